#include "room.h"

#include <stdlib.h>

#define CACHE_LINE 64

struct room {
    real *at;
    integer count;
};

static real *at_least(struct room *room, integer count)
{
    if (count > room->count) {
        free(room->at);
        const size_t bytes = (size_t)count * sizeof(real);
        room->at = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
        room->count = room->at == NULL ? 0 : count;
    }
    return room->at;
}

real *room_for_call(integer count)
{
    static _Thread_local struct room room = {NULL, 0};
    return at_least(&room, count);
}

real *room_for_piece(integer count)
{
    static _Thread_local struct room room = {NULL, 0};
    return at_least(&room, count);
}

real *room_for_task(integer count)
{
    static _Thread_local struct room room = {NULL, 0};
    return at_least(&room, count);
}
