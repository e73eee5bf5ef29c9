/* SPDX-License-Identifier: MIT */
/*
 * Workers: the threads that carry nonblocking requests and copy lanes.
 */
#include "workers.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hipio_worker {
    struct hipio_workers *crew;
    struct hipio_worker *next;
    pthread_t thread;
    unsigned number;
};

static void append(struct hipio_workers *crew, struct hipio_job *job)
{
    job->next = NULL;
    job->previous = crew->tail;
    if (crew->tail)
        crew->tail->next = job;
    else
        crew->head = job;
    crew->tail = job;
    job->queued = true;
}

static void unlink_job(struct hipio_workers *crew, struct hipio_job *job)
{
    if (job->previous)
        job->previous->next = job->next;
    else
        crew->head = job->next;
    if (job->next)
        job->next->previous = job->previous;
    else
        crew->tail = job->previous;
    job->queued = false;
}

/* Waits for the next job, with the lock held; NULL when the crew is dismissed and nothing is left.
 */
static struct hipio_job *next_job(struct hipio_workers *crew)
{
    while (!crew->head && crew->dismissals == 0) {
        crew->idle++;
        pthread_cond_wait(&crew->work, &crew->lock);
        crew->idle--;
    }
    struct hipio_job *job = crew->head;
    if (job)
        unlink_job(crew, job);
    return job;
}

static void *carry_jobs(void *argument)
{
    struct hipio_worker *self = argument;
    struct hipio_workers *crew = self->crew;
    struct hipio_job *job;
    char name[16];

    snprintf(name, sizeof name, "%.11s/%u", crew->name, self->number % 1000);
    pthread_setname_np(pthread_self(), name);

    pthread_mutex_lock(&crew->lock);
    while ((job = next_job(crew))) {
        pthread_mutex_unlock(&crew->lock);
        job->run(job);
        pthread_mutex_lock(&crew->lock);
    }
    crew->started--;
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* The application's handlers must not run on our threads, so they start with every signal blocked.
 */
static int create_thread(struct hipio_worker *worker)
{
    sigset_t all, before;

    sigfillset(&all);
    int err = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (err)
        return err;
    err = pthread_create(&worker->thread, NULL, carry_jobs, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

/* With the lock held: the new thread waits for it, so it finds itself in the list. */
static int start_thread(struct hipio_workers *crew)
{
    struct hipio_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return ENOMEM;
    worker->crew = crew;
    worker->number = crew->serial++;
    int err = create_thread(worker);
    if (err) {
        free(worker);
        return err;
    }
    worker->next = crew->threads;
    crew->threads = worker;
    crew->started++;
    hipio_stats_add(HIPIO_COUNT_threads, 1);
    return 0;
}

static unsigned waiting_jobs(const struct hipio_workers *crew, unsigned most)
{
    unsigned n = 0;
    for (const struct hipio_job *job = crew->head; job && n < most; job = job->next)
        n++;
    return n;
}

int hipio_workers_submit(struct hipio_workers *crew, struct hipio_job *job, unsigned most)
{
    int err = 0;

    if (most > HIPIO_WORKERS_MAX)
        most = HIPIO_WORKERS_MAX;
    if (most == 0)
        most = 1;
    pthread_mutex_lock(&crew->lock);
    /* An idle thread that was woken for an earlier job still counts as idle until it runs. */
    if (crew->started < most && waiting_jobs(crew, crew->idle + 1) >= crew->idle)
        err = start_thread(crew);
    bool carried = crew->started > 0;
    if (carried) {
        append(crew, job);
        pthread_cond_signal(&crew->work);
    }
    pthread_mutex_unlock(&crew->lock);
    if (carried)
        return 0;
    return hipio_status_set(-EAGAIN,
                            "can't start a thread: %s; see ulimit -u and the cgroup's pids.max",
                            strerror(err));
}

bool hipio_workers_cancel(struct hipio_workers *crew, struct hipio_job *job)
{
    pthread_mutex_lock(&crew->lock);
    bool queued = job->queued;
    if (queued)
        unlink_job(crew, job);
    pthread_mutex_unlock(&crew->lock);
    return queued;
}

void hipio_workers_dismiss(struct hipio_workers *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->dismissals++;
    pthread_cond_broadcast(&crew->work);
    while (crew->threads) {
        struct hipio_worker *worker = crew->threads;
        crew->threads = worker->next;
        pthread_mutex_unlock(&crew->lock);
        pthread_join(worker->thread, NULL);
        free(worker);
        hipio_stats_add(HIPIO_COUNT_threads, -1);
        pthread_mutex_lock(&crew->lock);
    }
    crew->dismissals--;
    pthread_mutex_unlock(&crew->lock);
}
