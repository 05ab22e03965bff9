#include "tasks.h"

#include <stdatomic.h>

/* GOMP_parallel of the OpenMP runtime that PyTorch itself uses, handed over by the caller. */
typedef void (*parallel_region)(void (*body)(void *), void *argument, unsigned threads, unsigned flags);

static parallel_region region = NULL;

void set_parallel_region(void *function) { region = (parallel_region)function; }

struct job {
    task one;
    void *work;
    integer tasks;
    _Atomic integer next;
};

static void take_tasks(void *argument)
{
    struct job *job = argument;
    for (;;) {
        const integer number = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (number >= job->tasks)
            return;
        job->one(job->work, number);
    }
}

void run_tasks(integer threads, integer tasks, task one, void *work)
{
    struct job job = {one, work, tasks, 0};
    if (threads > 1 && tasks > 1 && region != NULL)
        region(take_tasks, &job, (unsigned)threads, 0);
    else
        take_tasks(&job);
}

static void count_task(void *work, integer number) { ((struct counting *)work)->seen.at[number]++; }

enum answer try_threads(const struct counting *call)
{
    NEED_SIZES(call->threads >= 1 && call->seen.at != NULL);
    run_tasks(call->threads, call->seen.count, count_task, (void *)call);
    return DONE;
}
