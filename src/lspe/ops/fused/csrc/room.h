/* Room that each thread keeps for its next call, piece of work or task within one; null where there is no memory. */
#ifndef LSPE_ROOM_H
#define LSPE_ROOM_H

#include "real.h"

/* Places within room that begin at whole cache lines: counts are rounded up. */
static inline integer in_lines(integer count) { return (count + 15) / 16 * 16; }

real *room_for_call(integer count);
real *room_for_piece(integer count);
real *room_for_task(integer count);

#endif
