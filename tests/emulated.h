// What a kernel of one block needs of CUDA, on a processor: its threads take turns, each as far as a barrier. In the other order of threads a
// number that is read before it is written, or after it is written over, is another one.
#include <ucontext.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#define __device__
#define __global__
#define __noinline__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __builtin_assume(x)

struct Index { int x; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
static Index threadIdx, blockIdx{0}, gridDim{1};
using std::erfc;

struct Fibre { ucontext_t context; char* stack; bool done; };
static std::vector<Fibre> fibres;
static ucontext_t outside;
static int direction = 1;
static long arrived = 0, generation = 0;  // at the barrier of all threads
static long warp_arrived[64], warp_generation[64];
static double passed[2048];

static void yield() {
  int mine = threadIdx.x, count = fibres.size(), next = mine;
  do next = (next + direction + count) % count; while (fibres[next].done && next != mine);
  if (next == mine) return;
  threadIdx.x = next;
  swapcontext(&fibres[mine].context, &fibres[next].context);
}
static void meet(long& here, long& now, long count) {
  long before = now;
  if (++here == count) here = 0, ++now;
  else while (now == before) yield();
}
static inline void __syncthreads() { meet(arrived, generation, fibres.size()); }
template <class T> static T __shfl_xor_sync(unsigned, T value, int distance) {
  int mine = threadIdx.x, warp = mine / 32;
  passed[mine] = value;
  meet(warp_arrived[warp], warp_generation[warp], 32);
  T found = passed[mine ^ distance];
  meet(warp_arrived[warp], warp_generation[warp], 32);
  return found;
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }

static void (*body)();
static void begin() {
  body();
  int mine = threadIdx.x;
  fibres[mine].done = true;
  for (auto& one : fibres) if (!one.done) { yield(); }
  swapcontext(&fibres[mine].context, &outside);
}
static void run_block(int threads, int order, void (*what)()) {
  body = what, direction = order, arrived = generation = 0;
  for (int w = 0; w < 64; ++w) warp_arrived[w] = warp_generation[w] = 0;
  fibres.assign(threads, {});
  for (auto& one : fibres) {
    getcontext(&one.context);
    one.stack = (char*)malloc(1 << 18);
    one.context.uc_stack.ss_sp = one.stack, one.context.uc_stack.ss_size = 1 << 18, one.context.uc_link = &outside;
    makecontext(&one.context, begin, 0);
  }
  threadIdx.x = order > 0 ? 0 : threads - 1;
  swapcontext(&outside, &fibres[threadIdx.x].context);
  for (auto& one : fibres) free(one.stack);
}
