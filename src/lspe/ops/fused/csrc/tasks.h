/* Work split into numbered tasks. Which thread takes which task is left to chance, what a task computes is not:
   results are the same bits for every number of threads. */
#ifndef LSPE_TASKS_H
#define LSPE_TASKS_H

#include "real.h"

/* A task begins by copying its work: then the compiler knows that what it stores does not change the sizes and
   places it works with. */
typedef void (*task)(void *work, integer number);

void run_tasks(integer threads, integer tasks, task one, void *work);

/* The rows [begin, end) of task `number`, with ROWS_A_TASK rows in all but the last. */
#define ROWS_A_TASK 32

static inline integer tasks_of(integer rows) { return (rows + ROWS_A_TASK - 1) / ROWS_A_TASK; }
static inline integer begin_of(integer number) { return number * ROWS_A_TASK; }
static inline integer end_of(integer number, integer rows)
{
    const integer end = (number + 1) * ROWS_A_TASK;
    return end < rows ? end : rows;
}

#endif
