/* SPDX-License-Identifier: MIT */
/*
 * Workers: a crew of threads that carry jobs in the order of submission.
 *
 * Threads are started when a job finds none idle, up to the bound that comes with the job, and stay
 * until the crew is dismissed. They block every signal. A job belongs to the caller; the crew links
 * it while it waits and does not touch it once `run` has been called.
 */
#pragma once
#include <pthread.h>
#include <stdbool.h>

struct hipio_job {
    void (*run)(struct hipio_job *job);
    /* The crew's own. */
    struct hipio_job *next;
    struct hipio_job *previous;
    bool queued;
};

struct hipio_worker;

struct hipio_workers {
    const char *name;     /* of the threads; at most 11 characters, a number follows */
    pthread_mutex_t lock; /* guards everything below; never held while a job runs */
    pthread_cond_t work;
    struct hipio_job *head;
    struct hipio_job *tail;
    struct hipio_worker *threads;
    unsigned started; /* threads alive */
    unsigned idle;    /* of these, waiting for work and not yet promised a job */
    unsigned serial;
    unsigned dismissals; /* under way; several threads may dismiss at once */
};

#define HIPIO_WORKERS_INIT(thread_name)                                                            \
    {                                                                                              \
        .name = (thread_name), .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER \
    }

/* No crew is larger, whatever a setting says. */
#define HIPIO_WORKERS_MAX 64

/* Queues the job. 0, or -EAGAIN with text when the crew has no thread and none could be started:
 * then the job was not queued. */
int hipio_workers_submit(struct hipio_workers *crew, struct hipio_job *job, unsigned most);
/* Takes a job back that no thread has begun. False: its run was called or will be. */
bool hipio_workers_cancel(struct hipio_workers *crew, struct hipio_job *job);
/* Lets the queued jobs finish and joins the threads. Jobs that are submitted meanwhile are carried
 * too. */
void hipio_workers_dismiss(struct hipio_workers *crew);
