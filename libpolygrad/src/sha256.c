#include "sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n) {
  return x >> n | x << (32 - n);
}

static void add_blocks(uint32_t state[8], const uint8_t *data, uint64_t count) {
  for (; count; count--, data += 64) {
    uint32_t w[64], s[8];
    for (unsigned i = 0; i < 16; i++)
      w[i] = (uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16 | (uint32_t)data[4 * i + 2] << 8 |
             data[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
      uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
      uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
      uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
      uint32_t t = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
      uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
      uint32_t u = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      memmove(s + 1, s, 7 * sizeof *s);
      s[4] += t;
      s[0] = t + u;
    }
    for (unsigned i = 0; i < 8; i++)
      state[i] += s[i];
  }
}

#if defined(__x86_64__)

bool sha256_is_fast(void) {
  unsigned a, b, c, d;
  bool sse4 = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) && (c & bit_SSE4_1);
  return sse4 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 29);
}

/* The instructions keep the state as the words abef and cdgh. */
__attribute__((target("sha,ssse3,sse4.1"))) static void add_blocks_fast(uint32_t state[8],
                                                                        const uint8_t *data, uint64_t count) {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xB1);
  __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1B);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
  for (; count; count--, data += 64) {
    __m128i a = abef, c = cdgh, w[16];
    for (unsigned i = 0; i < 16; i++) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), order);
      } else {
        __m128i sum =
            _mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]), _mm_alignr_epi8(w[i - 1], w[i - 2], 4));
        w[i] = _mm_sha256msg2_epu32(sum, w[i - 1]);
      }
      __m128i x = _mm_add_epi32(w[i], _mm_loadu_si128((const __m128i *)(K + 4 * i)));
      c = _mm_sha256rnds2_epu32(c, a, x);
      a = _mm_sha256rnds2_epu32(a, c, _mm_shuffle_epi32(x, 0x0E));
    }
    abef = _mm_add_epi32(abef, a);
    cdgh = _mm_add_epi32(cdgh, c);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool sha256_is_fast(void) {
  return false;
}

#define add_blocks_fast add_blocks

#endif

void sha256(struct bytes data, bool fast, uint8_t digest[32]) {
  uint32_t state[8] = {
      0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  };
  uint64_t whole = data.length / 64, rest = data.length % 64, bits = 8 * data.length;
  (fast ? add_blocks_fast : add_blocks)(state, data.data, whole);
  uint8_t last[128] = {0};
  if (rest)
    memcpy(last, data.data + 64 * whole, rest);
  last[rest] = 0x80;
  uint64_t count = rest < 56 ? 1 : 2;
  for (unsigned i = 0; i < 8; i++)
    last[64 * count - 1 - i] = (uint8_t)(bits >> 8 * i);
  add_blocks(state, last, count);
  for (unsigned i = 0; i < 32; i++)
    digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
