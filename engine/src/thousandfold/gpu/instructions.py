"""The instructions of a program in CUDA C++. A block of THREADS threads runs them for one member.

`write.py` writes the calls. All sizes and tables of places are known at compile time. The order of a sum is fixed. The text is in a Python
module so that keys cover it.
"""

TEXT = """
__shared__ __align__(16) real shared[SHARED];  // of the block: weights, parts of what is multiplied, parts of sums

#define EACH(i, count) for (int i = threadIdx.x; i < (count); i += THREADS)

__device__ __forceinline__ constexpr int over(int a, int b) { return (a + b - 1) / b; }  // a / b, rounded up
__device__ __forceinline__ constexpr int least(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ constexpr int most(int a, int b) { return a > b ? a : b; }

// Where element i of a dimension lies: steps of one size, steps within steps, or a table.
template <int STRIDE> struct Run { static __device__ __forceinline__ int at(int i) { return i * STRIDE; } };
template <int SIZE, int STRIDE, class Outer> struct Split {
  static __device__ __forceinline__ int at(int i) { return Outer::at(i / SIZE) + i % SIZE * STRIDE; }
};
template <int BEGIN> struct Table { static __device__ __forceinline__ int at(int i) { return TABLE[BEGIN + i]; } };

// NaN where either is.
__device__ __forceinline__ real larger(real x, real y) { return x > y || x != x ? x : y; }
__device__ __forceinline__ real smaller(real x, real y) { return x < y || x != x ? x : y; }
__device__ __forceinline__ real sign(real x) { return x > 0 ? real(1) : x < 0 ? real(-1) : real(0); }
__device__ __forceinline__ real logistic(real x) { return real(1) / (R(exp)(-x) + real(1)); }
__device__ __forceinline__ real normal_below(real x) { return real(0.5) * R(erfc)(x * real(-0.70710678118654752)); }

constexpr int SUM = 0, MAXIMUM = 1, MINIMUM = 2;

template <int KIND> __device__ __forceinline__ real joined(real a, real b) {
  return KIND == SUM ? a + b : KIND == MAXIMUM ? larger(a, b) : smaller(a, b);
}

template <int KIND> __device__ __forceinline__ real nothing() {
  return KIND == SUM ? real(0) : KIND == MAXIMUM ? -infinite() : infinite();
}

// COUNT numbers on their way at once, some by each thread: load(i), then store(i, number).
template <int COUNT, class Load, class Store> __device__ __forceinline__ void copy(Load load, Store store) {
  constexpr int each = least(8, over(COUNT, THREADS));
  for (int first = threadIdx.x; first < COUNT; first += each * THREADS) {
    real held[each];
#pragma unroll
    for (int u = 0; u < each; ++u) held[u] = first + u * THREADS < COUNT ? load(first + u * THREADS) : real(0);
#pragma unroll
    for (int u = 0; u < each; ++u)
      if (first + u * THREADS < COUNT) store(first + u * THREADS, held[u]);
  }
}

__device__ __forceinline__ real sum_of_32(real x) {
#pragma unroll
  for (int half = 16; half; half /= 2) x += __shfl_xor_sync(0xffffffffu, x, half);
  return x;
}

// load(0), load(1), ... joined in this order, of which several are on their way at once.
template <int KIND, int COUNT, class Load> __device__ __forceinline__ real join(Load load) {
  constexpr int each = least(8, COUNT);
  real found = nothing<KIND>();
  for (int first = 0; first < COUNT; first += each) {
    real held[each];
#pragma unroll
    for (int u = 0; u < each; ++u) held[u] = first + u < COUNT ? load(first + u) : nothing<KIND>();
#pragma unroll
    for (int u = 0; u < each; ++u) found = joined<KIND>(found, held[u]);
  }
  return found;
}

// RED whose neighbours are outputs: out[o(r) + l] = all in[i(r) + k(t) + l], l < RUN. Threads share the terms where there are many.
template <int KIND, int ROWS, int RUN, int TERMS, class I, class O, class K>
__device__ __noinline__ void reduce(real* out, const real* in) {
  GLOBAL(out); GLOBAL(in);
  constexpr int count = ROWS * RUN, parts = most(1, least(TERMS, THREADS / count));
  if constexpr (parts == 1) {
    EACH(i, count) {
      int r = i / RUN, l = i % RUN;
      const real* from = in + I::at(r) + l;
      out[O::at(r) + l] = join<KIND, TERMS>([=](int t) { return from[K::at(t)]; });
    }
  } else {
    int i = threadIdx.x % count, part = threadIdx.x / count;
    if (part < parts) {
      const real* from = in + I::at(i / RUN) + i % RUN;
      shared[part * count + i] = join<KIND, over(TERMS, parts)>([=](int j) {
        int t = part + j * parts;
        return t < TERMS ? from[K::at(t)] : nothing<KIND>();
      });
    }
    __syncthreads();
    EACH(i, count) {
      real found = shared[i];
      for (int other = 1; other < parts; ++other) found = joined<KIND>(found, shared[other * count + i]);
      out[O::at(i / RUN) + i % RUN] = found;
    }
  }
}

// RED whose neighbours are terms: out[o(r)] = all in[i(r) + k(t) + n], n < RUN, by 32 threads an output.
template <int KIND, int ROWS, int RUN, int TERMS, class I, class O, class K>
__device__ __noinline__ void reduce_neighbours(real* out, const real* in) {
  GLOBAL(out); GLOBAL(in);
  int lane = threadIdx.x % 32;
  for (int r = threadIdx.x / 32; r < ROWS; r += THREADS / 32) {
    const real* from = in + I::at(r);
    real found = join<KIND, over(TERMS * RUN, 32)>([=](int j) {
      int t = lane + 32 * j;
      return t < TERMS * RUN ? from[K::at(t / RUN) + t % RUN] : nothing<KIND>();
    });
#pragma unroll
    for (int half = 16; half; half /= 2) found = joined<KIND>(found, __shfl_xor_sync(0xffffffffu, found, half));
    if (lane == 0) out[O::at(r)] = found;
  }
}

// The first of the largest, counted from 0; a NaN is larger than any number.
template <int ROWS, int RUN, int TERMS, class I, class O, class K>
__device__ __noinline__ void place_of_largest(real* out, const real* in) {
  GLOBAL(out); GLOBAL(in);
  constexpr int each = least(8, TERMS);
  EACH(i, ROWS * RUN) {
    int r = i / RUN, l = i % RUN, found = 0;
    const real* from = in + I::at(r) + l;
    real largest = from[K::at(0)];
    for (int first = 0; first < TERMS; first += each) {
      real held[each];
#pragma unroll
      for (int u = 0; u < each; ++u) held[u] = from[K::at(least(first + u, TERMS - 1))];
#pragma unroll
      for (int u = 0; u < each; ++u)
        if (held[u] > largest || (held[u] != held[u] && largest == largest)) largest = held[u], found = first + u;
    }
    out[O::at(r) + l] = found;
  }
}

// out[oo(j) + od(d)] = x[xo(j) + xd(d) + STRIDE index[io(j)]]
template <int PLACES, int FEATURES, int STRIDE, class IO, class XO, class OO, class XD, class OD>
__device__ __noinline__ void gather(real* out, const real* x, const real* index) {
  GLOBAL(out); GLOBAL(x); GLOBAL(index);
  EACH(i, PLACES * FEATURES) {
    int j = i % PLACES, d = i / PLACES;
    out[OO::at(j) + OD::at(d)] = x[XO::at(j) + XD::at(d) + STRIDE * int(index[IO::at(j)])];
  }
}

// Zeros, and v[vo(j) + vd(d)] written or added at out[xo(j) + xd(d) + STRIDE index[io(j)]]. Only within a group of PLACES may two be added
// at one place; what has one index there is one thread's, in order.
template <int ZEROS, bool ADDS, int GROUPS, int PLACES, int FEATURES, int STRIDE, class IO, class XO, class VO, class XD, class VD>
__device__ __noinline__ void scatter(real* out, const real* index, const real* v) {
  GLOBAL(out); GLOBAL(index); GLOBAL(v);
  constexpr int owners = most(1, THREADS / (GROUPS * FEATURES)), each = least(8, PLACES);
  EACH(i, ZEROS) out[i] = 0;
  __syncthreads();
  EACH(i, GROUPS * FEATURES * owners) {
    int d = i % FEATURES, group = i / FEATURES % GROUPS, mine = i / FEATURES / GROUPS;
    for (int first = 0; first < PLACES; first += each) {
      int at[each];
#pragma unroll
      for (int u = 0; u < each; ++u) at[u] = first + u < PLACES ? int(index[IO::at(group * PLACES + first + u)]) : -1;
#pragma unroll
      for (int u = 0; u < each; ++u) {
        if (at[u] < 0 || at[u] % owners != mine) continue;
        int j = group * PLACES + first + u;
        real* to = out + XO::at(j) + XD::at(d) + STRIDE * at[u];
        *to = v[VO::at(j) + VD::at(d)] + (ADDS ? *to : real(0));
      }
    }
  }
}

// Philox-4x64-10 (Salmon et al. 2011), block `block` of NumPy's generator: sixteen draws of 16 bits.
__device__ __forceinline__ void random_block(const word* key, word place, word step, word block, word* into) {
  word k0 = key[0], k1 = key[1], c0 = block + 1, c1 = 0, c2 = place, c3 = step;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    word low0 = 0xD2E7470EE14C6C93ull * c0, high0 = __umul64hi(0xD2E7470EE14C6C93ull, c0);
    word low1 = 0xCA5A826395121157ull * c2, high1 = __umul64hi(0xCA5A826395121157ull, c2);
    c0 = high1 ^ c1 ^ k0, c2 = high0 ^ c3 ^ k1, c1 = low1, c3 = low0;
    k0 += 0x9E3779B97F4A7C15ull, k1 += 0xBB67AE8584CAA73Bull;
  }
  into[0] = c0, into[1] = c1, into[2] = c2, into[3] = c3;
}

// MASK: what a dropout leaves, scaled, else 0. Element e(r) + STRIDE l is at out[o(r) + l]; `draws` is room for those of all elements.
template <int SIZE, int ROWS, int LANES, int STRIDE, class E, class O>
__device__ __noinline__ void mask(real* out, real* draws, const word* key, const word* step, word place, int threshold, real scale) {
  GLOBAL(out);
  EACH(k, over(SIZE, 16)) random_block(key, place, step[0], k, (word*)draws + 4 * k);
  __syncthreads();
  const unsigned short* draw = (const unsigned short*)draws;
#pragma unroll 4
  EACH(i, ROWS * LANES) {
    int r = i / LANES, l = i % LANES;
    out[O::at(r) + l] = draw[E::at(r) + STRIDE * l] >= threshold ? scale : real(0);
  }
}

// The norm of a member's gradient; every thread has it.
__device__ __forceinline__ real norm_of(const real* x, int count) {
  real found = 0;
  EACH(i, count) found = R(fma)(x[i], x[i], found);
  shared[threadIdx.x] = found;
  for (int half = THREADS / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  real total = R(sqrt)(shared[0]);
  __syncthreads();
  return total;
}
"""
