/* Room that each thread keeps for its next call, piece of work or task within one; null where there is no memory. */
#ifndef LSPE_ROOM_H
#define LSPE_ROOM_H

#include "real.h"

real *room_for_call(integer count);
real *room_for_piece(integer count);
real *room_for_task(integer count);

#endif
