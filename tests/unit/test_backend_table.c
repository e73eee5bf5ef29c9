/* SPDX-License-Identifier: MIT */
/*
 * Backend table: every line of table.def keeps the contract's form, so that a new line needs no new
 * test.
 */
#include "backend.h"
#include "rig.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_member_is_there(void **state)
{
    (void)state;
    assert_true(hipio_backend_count() <= HIPIO_STATS_BACKENDS);
    for (size_t i = 0; i < hipio_backend_count(); i++) {
        const struct hipio_backend *backend = hipio_backend_at(i);
        assert_int_equal(hipio_backend_index(backend), i);
        assert_true(backend->name && backend->name[0]);
        assert_true(backend->score && backend->io && backend->eligible && backend->share &&
                    backend->usable);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(backend->name, hipio_backend_at(k)->name);
    }
}

static void fallbacks_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < hipio_backend_count(); i++) {
        const struct hipio_backend *at = hipio_backend_at(i);
        for (size_t steps = 0; at; at = hipio_backend_fallback(at))
            assert_true(steps++ < hipio_backend_count());
    }
}

/* Memory that nobody can serve is refused by all, whatever else they may take, and no fast path
 * takes memory of a runtime that is not its own. */
static void what_nobody_knows_nobody_takes(void **state)
{
    static const enum hipio_memory_kind kinds[] = {HIPIO_MEMORY_INVALID, HIPIO_MEMORY_DEVICE};
    struct hipio_layout *run = rig_run(0, 1 << 20);
    struct rig rig;

    (void)state;
    rig_open(&rig, RIG_READ_WRITE, 1, 1 << 20);
    for (int k = 0; k < 2; k++) {
        struct hipio_memory memory = {kinds[k], 0, false, &hipio_device_host};
        struct hipio_request request =
            rig_request(&rig, HIPIO_READ, (void *)(1 << 20), &memory, run, run);
        struct hipio_part part = {&request, 0, 1 << 20, 0};
        for (size_t i = 0; i < hipio_backend_count(); i++) {
            const struct hipio_backend *backend = hipio_backend_at(i);
            if (backend->kind == HIPIO_BACKEND_FAST_PATH ||
                (backend->kind == HIPIO_BACKEND_STAGING && kinds[k] == HIPIO_MEMORY_INVALID))
                assert_true(backend->score(&part) < 0);
        }
    }
    hipio_layout_release(run);
    rig_close(&rig);
}

/* Without a GPU runtime in the process, forcing the fast path concerns nobody. */
static void nothing_is_refused_without_a_gpu(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, RIG_READ_WRITE, 1, 100);
    assert_int_equal(hipio_file_check_fastpath(rig.file), 0);
    rig_set(&rig, "fastpath", "force");
    assert_int_equal(hipio_file_check_fastpath(rig.file), 0);
    for (size_t i = 0; i < hipio_backend_count(); i++)
        assert_int_equal(hipio_backend_at(i)->usable(rig.file), -ENODEV);
    rig_set(&rig, "fallback", "force");
    assert_int_equal(hipio_file_check_fastpath(rig.file), -EINVAL);
    assert_non_null(strstr(hipio_status_text(), "exclude each other"));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_there),
        cmocka_unit_test(fallbacks_end),
        cmocka_unit_test(what_nobody_knows_nobody_takes),
        cmocka_unit_test(nothing_is_refused_without_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
