/* SHA-256 (FIPS 180-4). */

#ifndef PG_SHA256_H
#define PG_SHA256_H

#include "base.h"

/* Whether the processor has instructions for it. */
bool sha256_is_fast(void);
/* The digest of bytes. `fast`: what sha256_is_fast says, or false. */
void sha256(struct bytes data, bool fast, uint8_t digest[32]);

#endif
