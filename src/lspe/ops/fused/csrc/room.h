/* Room that each thread keeps for its next call, and for its next piece of work; null where there is no memory. */
#ifndef LSPE_ROOM_H
#define LSPE_ROOM_H

#include "real.h"

real *room_for_call(integer count);
real *room_for_piece(integer count);

#endif
