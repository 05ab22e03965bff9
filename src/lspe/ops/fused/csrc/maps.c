/* Linear maps [out, in] of one input as one product of matrices: side by side, transposed, each padded to the same
   width. Map m begins at weights[m] and its rows are weight_row[m] numbers apart. */
#include "real.h"

/* packed [padded_in, maps * padded], zeros in the padding. */
void pack_maps(integer maps, integer out, integer in, integer padded, integer padded_in, const real *const *weights,
               const integer *weight_row, real *packed)
{
    memset(packed, 0, (size_t)(padded_in * maps * padded) * sizeof *packed);
    for (integer m = 0; m < maps; m++)
        for (integer i = 0; i < in; i++)
            for (integer o = 0; o < out; o++)
                packed[(i * maps + m) * padded + o] = weights[m][o * weight_row[m] + i];
}

/* The same backwards: packed [in, maps * padded] into the weights. */
void unpack_maps(integer maps, integer out, integer in, integer padded, real *const *weights,
                 const integer *weight_row, const real *packed)
{
    for (integer m = 0; m < maps; m++)
        for (integer o = 0; o < out; o++)
            for (integer i = 0; i < in; i++)
                weights[m][o * weight_row[m] + i] = packed[(i * maps + m) * padded + o];
}
