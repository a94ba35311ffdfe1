"""Products of matrices in CUDA C++, computed by a block of threads for one member (see `instructions.py`)."""

TEXT = """
// LIN: out[c(r) + nc(n) + l] = bias[columns(n)] + all_k x[x(r) + kx(k) + l] w[kw(k) + nw(n)], l < RUN. A thread has LANES outputs of a
// column and COLUMNS columns; weights are laid side by side in shared memory.
template <int ROWS, int RUN, int N, int TERMS, int LANES, int COLUMNS, bool BIAS, bool TERMS_FIRST, class KX, class KW, class NW, class NC,
          class B, class RX, class RC>
__device__ __noinline__ void linear(real* out, const real* x, const real* w, const real* bias) {
  GLOBAL(out); GLOBAL(x); GLOBAL(w); GLOBAL(bias);
  constexpr int lanes = ROWS * RUN, groups = over(lanes, LANES);
  constexpr int wide = least(over(N, COLUMNS) * COLUMNS, SHARED / 8 / COLUMNS * COLUMNS);
  constexpr int deep = least(TERMS, SHARED / wide), chunks = over(TERMS, deep);
  for (int n0 = 0; n0 < N; n0 += wide) {
    int columns = least(wide, N - n0), tasks = groups * over(columns, COLUMNS);
    for (int first = 0; first < tasks; first += THREADS) {
      int task = first + threadIdx.x, n = n0 + task / groups * COLUMNS;
      bool busy = task < tasks;
      int from[LANES];
      real found[LANES][COLUMNS];
#pragma unroll
      for (int j = 0; j < LANES; ++j) {
        int l = least(task % groups + j * groups, lanes - 1);
        from[j] = RX::at(l / RUN) + l % RUN;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) found[j][c] = BIAS && busy && n + c < N ? bias[B::at(n + c)] : real(0);
      }
      for (int k0 = 0; k0 < TERMS; k0 += deep) {
        int terms = least(deep, TERMS - k0);
        if (first == 0 || chunks > 1) {
          __syncthreads();
          copy<deep * wide>(
              [=](int i) {
                int k = TERMS_FIRST ? i % deep : i / wide, c = TERMS_FIRST ? i / deep : i % wide;
                return k < terms && c < columns ? w[KW::at(k0 + k) + NW::at(n0 + c)] : real(0);
              },
              [=](int i, real value) { shared[TERMS_FIRST ? i % deep * wide + i / deep : i] = value; });
          __syncthreads();
        }
        if (busy) {
          const real* beside = shared + (n - n0);
#pragma unroll(8 / LANES)
          for (int k = 0; k < terms; ++k) {
            real a[LANES], b[COLUMNS];
#pragma unroll
            for (int j = 0; j < LANES; ++j) a[j] = x[from[j] + KX::at(k0 + k)];
#pragma unroll
            for (int c = 0; c < COLUMNS; c += 4) four(b + c, beside + k * wide + c);
#pragma unroll
            for (int j = 0; j < LANES; ++j)
#pragma unroll
              for (int c = 0; c < COLUMNS; ++c) found[j][c] = R(fma)(a[j], b[c], found[j][c]);
          }
        }
      }
      if (busy)
#pragma unroll
        for (int j = 0; j < LANES; ++j) {
          int l = task % groups + j * groups;
          if (l < lanes)
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
              if (n + c < N) out[RC::at(l / RUN) + l % RUN + NC::at(n + c)] = found[j][c];
        }
    }
    __syncthreads();
  }
}

// WGRAD: out[mc(m) + n] = all_q a[ma(m) + q] b[nb(n) + q], q over TERMS runs of RUN. Some q of all rows of both lie in shared memory, four
// rows side by side; a thread has 4 x 4 outputs, of every so many of the terms.
template <int M, int N, int TERMS, int RUN, int TALL, int WIDE, class MA, class NB, class MC, class KA, class KB>
__device__ __noinline__ void weights_gradient(real* out, const real* a, const real* b) {
  GLOBAL(out); GLOBAL(a); GLOBAL(b);
  constexpr int down = over(TALL, 4), across = over(WIDE, 4), tasks = down * across, all = TERMS * RUN, rows = 4 * (down + across);
  constexpr int step = over(rows - 4, 32) * 32 + 4;  // 8 q of 4 rows are then in 32 banks
  constexpr int deep = least(SHARED / step / 8, over(all, 8)) * 8;
  constexpr int parts = most(1, least(THREADS / tasks, SHARED / (TALL * WIDE)));
  constexpr int parts_of_q = over(deep, 64), each = over(deep / 8, parts_of_q);
  int lane = threadIdx.x % 32;
  static_assert(deep > 0 && tasks <= THREADS, "the tile is too large");
  int task = threadIdx.x % tasks, part = threadIdx.x / tasks, y = task / across * 4, x = task % across * 4;
  bool busy = part < parts;
  for (int m0 = 0; m0 < M; m0 += TALL)
    for (int n0 = 0; n0 < N; n0 += WIDE) {
      real found[4][4] = {};
      for (int q0 = 0; q0 < all; q0 += deep) {
        __syncthreads();
        for (int i = threadIdx.x / 32; i < rows / 4 * parts_of_q; i += THREADS / 32) {
          int row = i / parts_of_q * 4 + lane / 8, first = i % parts_of_q * each * 8 + lane % 8, n = row - 4 * down;
          bool left = row < 4 * down, there = left ? row < TALL && m0 + row < M : n < WIDE && n0 + n < N;
          const real* from = left ? a + MA::at(least(m0 + row, M - 1)) : b + NB::at(least(most(n0 + n, 0), N - 1));
          real held[each];
#pragma unroll
          for (int j = 0; j < each; ++j) {
            int q = q0 + first + 8 * j, run = least(q / RUN, TERMS - 1);
            int along = TERMS == 1 ? q : (left ? KA::at(run) : KB::at(run)) + q % RUN;
            held[j] = there && q < all ? from[along] : real(0);
          }
#pragma unroll
          for (int j = 0; j < each; ++j)
            if (first + 8 * j < deep) shared[(first + 8 * j) * step + row] = held[j];
        }
        __syncthreads();
        if (busy)
#pragma unroll 2
          for (int q = part; q < deep; q += parts) {
            real left[4], right[4];
            four(left, shared + q * step + y);
            four(right, shared + q * step + 4 * down + x);
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
              for (int k = 0; k < 4; ++k) found[j][k] = R(fma)(left[j], right[k], found[j][k]);
          }
      }
      if constexpr (parts > 1) {
        __syncthreads();
        if (busy)
#pragma unroll
          for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k)
              if (y + j < TALL && x + k < WIDE) shared[(part * TALL + y + j) * WIDE + x + k] = found[j][k];
        __syncthreads();
        EACH(i, TALL * WIDE) {
          int m = m0 + i / WIDE, n = n0 + i % WIDE;
          real total = shared[i];
          for (int other = 1; other < parts; ++other) total += shared[other * TALL * WIDE + i];
          if (m < M && n < N) out[MC::at(m) + n] = total;
        }
      } else if (busy) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int k = 0; k < 4; ++k)
            if (y + j < TALL && x + k < WIDE && m0 + y + j < M && n0 + x + k < N) out[MC::at(m0 + y + j) + n0 + x + k] = found[j][k];
      }
    }
}

// BMM, and GEN with one lane: out[oc(o) + mc(m) + nc(n) + l] = all_k a[oa(o) + ma(m) + ka(k) + la l] b[ob(o) + nb(n) + kb(k) + lb l].
template <int COUNT, int M, int N, int TERMS, int LANES, int LA, int LB, int TALL, int WIDE, class OA, class OB, class OC, class MA,
          class KA, class NB, class KB, class MC, class NC>
__device__ __noinline__ void product(real* out, const real* a, const real* b) {
  GLOBAL(out); GLOBAL(a); GLOBAL(b);
  constexpr int down = over(M, TALL), across = over(N, WIDE);
  EACH(task, COUNT * down * across * LANES) {
    int l = task % LANES, tile = task / LANES, n = tile % across * WIDE, m = tile / across % down * TALL, o = tile / across / down;
    const real *from_a = a + OA::at(o) + LA * l, *from_b = b + OB::at(o) + LB * l;
    int rows[TALL], columns[WIDE];
    real found[TALL][WIDE] = {};
#pragma unroll
    for (int j = 0; j < TALL; ++j) rows[j] = MA::at(least(m + j, M - 1));
#pragma unroll
    for (int c = 0; c < WIDE; ++c) columns[c] = NB::at(least(n + c, N - 1));
#pragma unroll(most(1, 16 / (TALL + WIDE)))
    for (int k = 0; k < TERMS; ++k) {
      real left[TALL], right[WIDE];
#pragma unroll
      for (int j = 0; j < TALL; ++j) left[j] = from_a[rows[j] + KA::at(k)];
#pragma unroll
      for (int c = 0; c < WIDE; ++c) right[c] = from_b[columns[c] + KB::at(k)];
#pragma unroll
      for (int j = 0; j < TALL; ++j)
#pragma unroll
        for (int c = 0; c < WIDE; ++c) found[j][c] = R(fma)(left[j], right[c], found[j][c]);
    }
#pragma unroll
    for (int j = 0; j < TALL; ++j)
#pragma unroll
      for (int c = 0; c < WIDE; ++c)
        if (m + j < M && n + c < N) out[OC::at(o) + MC::at(m + j) + NC::at(n + c) + (LANES > 1 ? l : 0)] = found[j][c];
  }
}

// LIN whose weights differ from row to row: out[c(r) + nc(n) + l] = all_k x[x(r) + kx(k) + l] w[rw(r) + kw(k) + nw(n)].
template <int ROWS, int RUN, int N, int TERMS, bool BIAS, class KX, class KW, class NW, class NC, class B, class RX, class RW, class RC>
__device__ __noinline__ void linear_by_row(real* out, const real* x, const real* w, const real* bias) {
  GLOBAL(out); GLOBAL(x); GLOBAL(w); GLOBAL(bias);
  EACH(i, ROWS * RUN * N) {
    int l = i % RUN, r = i / RUN % ROWS, n = i / RUN / ROWS;
    const real *from = x + RX::at(r) + l, *by = w + RW::at(r) + NW::at(n);
    real found = BIAS ? bias[B::at(n)] : real(0);
#pragma unroll 4
    for (int k = 0; k < TERMS; ++k) found = R(fma)(from[KX::at(k)], by[KW::at(k)], found);
    out[RC::at(r) + NC::at(n) + l] = found;
  }
}
"""
