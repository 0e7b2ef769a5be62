// Kernels of the card; `tests/support/literal/gpu_kernels.py` computes the same in plain NumPy.
//
// A column is a row of 16-byte chunks, a bit for each sample; samples are sorted by label and
// environment, so that a segment is a run of bits. One warp counts a column: popcounts of its
// words are summed up along the column, and a segment's count is the difference between the sums
// up to its end and up to its start, whatever the bits at which these lie.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef BLOCKS
#define BLOCKS 4  // of 256 threads on a multiprocessor: what the registers of judging allow
#endif
#ifndef WIDTH
#define WIDTH 32  // lanes that judge a column: a power of two, compiled for each
#endif
#define HALF (WIDTH / 2)
#define BATCH (32 / WIDTH)  // columns judged at a time
#define ALL 0xffffffffu
#define ROUNDS 4            // chunks that a lane holds at a time
#define TILE (32 * ROUNDS)  // chunks that a warp holds at a time

// What became of a candidate: a code of four bits, that of the rule settling the zeros lower.
enum { NONE, ALLOWED, DEPENDENT, UNREPLICATED, UNHELPFUL, OPEN, N_CODES };
enum { NO_TEST, PEARSON, YATES, LIKELIHOOD };

// --- counting ---------------------------------------------------------------

__device__ __forceinline__ void load_tile(
    uint4 (&tile)[ROUNDS], const uint4 *column, int first, int n_chunks, int lane) {
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    int chunk = first + 32 * r + lane;
    tile[r] = chunk < n_chunks ? __ldcs(column + chunk) : make_uint4(0, 0, 0, 0);
  }
}

// Sum over the lanes up to this one, of two numbers below 2^16 at once.
__device__ __forceinline__ u32 sum_up_to(u32 value, int lane) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    u32 other = __shfl_up_sync(ALL, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

// The ones before each of a chunk's four words: `start`, and what is inside on top of it.
__device__ __forceinline__ uint2 spread(u32 start, u32 inside) {
  const u32 twice = start | start << 16;
  return make_uint2(
      twice + ((inside & 0xff) << 16), twice + ((inside >> 8 & 0xff) | (inside & 0xff0000)));
}

// Each warp takes a `group` of columns at a time, and `batch` of these: it leaves the ones up to the
// start of each segment in its part of the shared memory, n_segments + 1 numbers a column, and calls
// `take`; after the last of the group, `finish`.
template <class Take, class Finish>
__device__ __forceinline__ void count_columns(
    const uint4 *words, i64 n, const uint4 *mask, const int *bounds, const int *tiles,
    int n_chunks, int n_tiles, int n_segments, int batch, int group, Take take, Finish finish) {
  extern __shared__ uint4 shared[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
  // of each word: itself, and the ones before it in the tile, which 16 bits can hold
  uint4 *chunks = shared + warp * TILE;
  uint2 *before = (uint2 *)(shared + n_warps * TILE) + warp * TILE;
  const u32 *held = (const u32 *)chunks;
  const u16 *held_before = (const u16 *)before;
  int *ones = (int *)((uint2 *)(shared + n_warps * TILE) + n_warps * TILE);
  ones += warp * batch * (n_segments + 1);
  const i64 stride = (i64)gridDim.x * n_warps * group;
  uint4 tile[ROUNDS];
  i64 first = ((i64)blockIdx.x * n_warps + warp) * group;
  if (first >= n) return;
  load_tile(tile, words + first * n_chunks, 0, n_chunks, lane);
  for (; first < n; first += stride) {
    const i64 end = min(first + group, n);
    for (i64 at = first; at < end; at++) {
      const int j = (int)(at - first) & (batch - 1);  // a power of two
      int *own = ones + j * (n_segments + 1);
      int base = 0;
      for (int t = 0; t < n_tiles; t++) {
        u32 counts[ROUNDS], inside[ROUNDS];
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
          // from the cache: held in registers, the mask would leave too few for judging
          const int chunk = t * TILE + 32 * r + lane;
          uint4 word = tile[r], wanted = chunk < n_chunks ? __ldg(mask + chunk) : word;
          word.x &= wanted.x, word.y &= wanted.y, word.z &= wanted.z, word.w &= wanted.w;
          const u32 one = __popc(word.x), two = one + __popc(word.y), three = two + __popc(word.z);
          counts[r] = three + __popc(word.w);
          inside[r] = one | two << 8 | three << 16;
          chunks[32 * r + lane] = word;
        }
        u32 in_tile = 0;
#pragma unroll
        for (int r = 0; r < ROUNDS; r += 2) {
          u32 upto = sum_up_to(counts[r] | counts[r + 1] << 16, lane);
          u32 total = __shfl_sync(ALL, upto, 31);
          before[32 * r + lane] = spread(in_tile + (upto & 0xffff) - counts[r], inside[r]);
          in_tile += total & 0xffff;
          before[32 * r + 32 + lane] = spread(in_tile + (upto >> 16) - counts[r + 1], inside[r + 1]);
          in_tile += total >> 16;
        }
        // the next tile, or column, while this one is looked at
        const bool is_last = t + 1 == n_tiles;
        i64 next = !is_last ? at : at + 1 < end ? at + 1 : first + stride;
        if (next < n) {
          const uint4 *column = words + next * n_chunks;
          load_tile(tile, column, is_last ? 0 : (t + 1) * TILE, n_chunks, lane);
        }
        __syncwarp();
        for (int s = tiles[t] + lane; s < tiles[t + 1]; s += 32) {
          int bit = __ldg(bounds + s), word = (bit >> 5) - 4 * t * TILE;
          own[s] = base + held_before[word] + __popc(held[word] & ((1u << (bit & 31)) - 1));
        }
        base += in_tile;
        __syncwarp();
      }
      for (int s = tiles[n_tiles] + lane; s <= n_segments; s += 32) own[s] = base;
      if (j + 1 < batch && at + 1 < end) continue;
      __syncwarp();
      take(at - j, j + 1, ones, lane);
      __syncwarp();
    }
    finish(first, lane);
  }
}

extern "C" __global__ void __launch_bounds__(256) count_bits(
    const uint4 *words, i64 n, const uint4 *mask, const int *bounds, const int *tiles,
    int n_chunks, int n_tiles, int n_segments, int *out) {
  auto take = [=](i64 first, int, const int *ones, int lane) {
    for (int s = lane; s < n_segments; s += 32) out[first * n_segments + s] = ones[s + 1] - ones[s];
  };
  auto finish = [](i64, int) {};
  count_columns(
      words, n, mask, bounds, tiles, n_chunks, n_tiles, n_segments, 1, 1, take, finish);
}

// --- judging ----------------------------------------------------------------

template <int N, class Number>
__device__ __forceinline__ Number add_up(Number value) {
#pragma unroll
  for (int step = N / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// Two sums at once over the lanes of a column: of `low` for the lower half, of `high` for the upper.
template <class Number>
__device__ __forceinline__ Number add_up_both(Number low, Number high, bool is_upper) {
  const Number sent = is_upper ? low : high, kept = is_upper ? high : low;
  return add_up<HALF>(kept + __shfl_xor_sync(ALL, sent, HALF));
}

// The same of what 32 bits can hold: there the card has one instruction for all of its lanes.
__device__ __forceinline__ u32 add_up_small(u32 low, u32 high, bool is_upper) {
#if WIDTH == 32 && __CUDA_ARCH__ >= 800
  const u32 all_low = __reduce_add_sync(ALL, low), all_high = __reduce_add_sync(ALL, high);
  return is_upper ? all_high : all_low;
#else
  return add_up_both(low, high, is_upper);
#endif
}

// Those by which a rule is a candidate, and allowed: `CandidateCriteria` in Python says what each is.
struct Criteria {
  i64 p_numerator, p_denominator, min_utility;
  double unreplicated_below, replicated_from, min_evidence, evidence_slack;
  const double *passes_below, *fails_from;  // statistics, by degrees of freedom
  int statistic, is_inverted, n_negative, n_positive;
};

// Of one leaf: negatives, positives, environments that have samples, the squares of their sizes,
// what its statistic is made of, by how many its positives are fewer than chance gives it, and
// whether its cut is replicated: 0 surely not, 1 open, 2 surely.
struct Leaf {
  int negatives, positives, n_columns, replicated;
  u64 squares;
  double inside, shift;
};

// By bits, since the card converts few numbers at a time: whole ones from 0 on, and below 1.
__device__ __forceinline__ double as_double(int number) {
  return __hiloint2double(0x43300000, number) - 4503599627370496.0;
}

__device__ __forceinline__ double invert(double number, int same) {
  float guess;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"((float)same));
  const u32 bits = __float_as_uint(guess);
  const double near = __hiloint2double((bits >> 3) + 0x38000000, bits << 29);
  return fma(near, fma(-number, near, 1.0), near);  // to 1.5e-14 of it
}

// Sums of these over environments give the statistics; they wait for nothing that all of a column
// must first be known for.
__device__ __forceinline__ double weigh(int negatives, int positives) {
  const int size = max(negatives + positives, 1);
  return as_double(negatives) * as_double(positives) * invert(as_double(size), size);
}

struct Logarithms {
  const double *known;  // x log x, by x
  int n_known;

  __device__ __forceinline__ double operator()(int x) const {
    return x < n_known ? __ldg(known + x) : x * log((double)x);
  }

  __device__ __forceinline__ double weigh(int negatives, int positives) const {
    return (*this)(negatives) + (*this)(positives) - (*this)(negatives + positives);
  }
};

// With A negatives, B positives, N in all: Pearson's is N (1 - N / AB sum ab / n). Yates' correction
// of two environments' n: off = |b - n B / N| is the same in both.
__device__ __forceinline__ double find_pearson(const Leaf &leaf, bool is_corrected) {
  const double a = leaf.negatives, b = leaf.positives, n = a + b;
  const double found = fmax(n * (1.0 - n * leaf.inside / (a * b)), 0.0);
  if (!is_corrected) return found;
  const u64 total = leaf.negatives + leaf.positives;
  const double scale = n * n * n / (a * b * (double)((total * total - leaf.squares) / 2));
  const double off = fmax(sqrt(found / scale) - 0.5, 0.0);
  return off * off * scale;
}

__device__ __forceinline__ double find_likelihood(const Leaf &leaf, const Logarithms &f) {
  return fmax(2.0 * (leaf.inside - f.weigh(leaf.negatives, leaf.positives)), 0.0);
}

// Half the deviance of the labels of the leaf and of the others in play from those by chance, against
// the least that is helpful. A cell that is many times that by chance multiplies rounding as often.
__device__ __forceinline__ int judge_evidence(const Criteria &s, const Leaf &leaf) {
  if (s.min_evidence <= 0.0) return ALLOWED;
  double evidence = 0.0, largest = 1.0;
  if (leaf.shift > 0.0) {
    const int cells[4] = {leaf.positives, s.n_negative - leaf.negatives, leaf.negatives,
                          s.n_positive - leaf.positives};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (cells[i] == 0) continue;
      const double n = cells[i], by_chance = i < 2 ? n + leaf.shift : n - leaf.shift;
      const double ratio = n / fmax(by_chance, 1e-300);
      evidence += n * log(ratio), largest = fmax(largest, ratio);
    }
  }
  const double off = evidence - s.min_evidence;
  if (fabs(off) <= s.evidence_slack * largest) return OPEN;
  return off < 0.0 ? UNHELPFUL : ALLOWED;
}

__device__ __forceinline__ int judge(
    const Criteria &s, const Leaf &leaf, double statistic, int dof) {
  int size = leaf.negatives + leaf.positives, n_all = s.n_negative + s.n_positive;
  if (leaf.negatives == 0 || size >= n_all) return NONE;
  if (s.statistic != NO_TEST && dof > 0) {
    if (statistic >= s.fails_from[dof]) return DEPENDENT;
    if (!(statistic < s.passes_below[dof])) return OPEN;
  }
  if (leaf.replicated < 2) return leaf.replicated ? OPEN : UNREPLICATED;
  i64 utility = s.p_denominator * leaf.negatives - s.p_numerator * leaf.positives;
  return utility < s.min_utility ? UNHELPFUL : judge_evidence(s, leaf);
}

// `totals` are the ones of each column by label, negatives first; `codes` what became of its two
// candidates. Where `statistics` is given, these and the degrees of freedom are written too.
// The fields of `Segments` and `CandidateCriteria` in Python, and where the results go.
#define CRITERIA_PARAMETERS                                                                     \
  int n_environments, const int *n_rows, int n_negative, int n_positive, int is_inverted,       \
      i64 p_numerator, i64 p_denominator, int statistic,                                        \
      const double *passes_below, const double *fails_from, const double *logarithms,           \
      int n_logarithms, const double *replication_factors, double unreplicated_below,           \
      double replicated_from, i64 min_utility, const double *positive_rates,                    \
      double min_evidence, double evidence_slack, int2 *totals, u8 *codes, double *statistics,  \
      int *dofs
#define CRITERIA_ARGUMENTS                                                                      \
  n_environments, n_rows, n_negative, n_positive, is_inverted, p_numerator, p_denominator,      \
      statistic, passes_below, fails_from, logarithms, n_logarithms,                            \
      replication_factors, unreplicated_below, replicated_from, min_utility, positive_rates,    \
      min_evidence, evidence_slack, totals, codes, statistics, dofs

// `bring` calls the two functions that it is given as `count_columns` does.
template <bool IS_LIKELIHOOD, class Bring>
__device__ __forceinline__ void judge_columns(i64 n, Bring bring, CRITERIA_PARAMETERS) {
  const Criteria criteria = {
      p_numerator,  p_denominator,  min_utility, unreplicated_below, replicated_from,
      min_evidence, evidence_slack, passes_below, fails_from,
      statistic,    is_inverted,    n_negative,   n_positive};
  const int n_all = n_negative + n_positive;
  __shared__ Leaf kept[256];
  const Logarithms logarithm = {logarithms, n_logarithms};
  auto take = [=](i64 first, int size, const int *ones, int lane) {
    // WIDTH lanes to a column, each for some of the environments; then half of them for each leaf
    const int j = lane / WIDTH, member = lane % WIDTH;
    const bool sign = member >= HALF;
    const int *own = ones + (j < size ? j : 0) * (2 * n_environments + 1);
    const int negative = criteria.is_inverted ? n_environments : 0;
    const int positive = n_environments - negative;
    Leaf zeros = {0, 0, 0, 0, 0, 0.0, 0.0}, some = {0, 0, 0, 0, 0, 0.0, 0.0};
    double informs = 0.0, squares = 0.0;
#pragma unroll 1  // more at once would take too many registers
    for (int k = member; k < n_environments; k += WIDTH) {
      const int a = own[negative + k + 1] - own[negative + k];
      const int b = own[positive + k + 1] - own[positive + k];
      const int c = __ldg(n_rows + negative + k) - a, d = __ldg(n_rows + positive + k) - b;
      const u32 here = a + b, there = c + d;
      some.negatives += a, some.positives += b;
      some.n_columns += here > 0, zeros.n_columns += there > 0;
      some.squares += (u64)here * here, zeros.squares += (u64)there * there;
      const double weight = as_double(here) * as_double(there) * __ldg(replication_factors + k);
      informs += weight, squares += weight * weight;
      some.shift += as_double(here) * __ldg(positive_rates + k);
      if (criteria.statistic != NO_TEST) {
        some.inside += IS_LIKELIHOOD ? logarithm.weigh(a, b) : weigh(a, b);
        zeros.inside += IS_LIKELIHOOD ? logarithm.weigh(c, d) : weigh(c, d);
      }
    }
    // the lanes share what they found: each keeps one leaf of one column of the group
    const int label = add_up_small(some.negatives, some.positives, sign);
    const int other = __shfl_xor_sync(ALL, label, HALF);
    const int2 total = sign ? make_int2(other, label) : make_int2(label, other);
    Leaf leaf;
    leaf.negatives = sign ? total.x : n_negative - total.x;
    leaf.positives = sign ? total.y : n_positive - total.y;
    leaf.n_columns = add_up_small(zeros.n_columns, some.n_columns, sign);
    leaf.squares = n_all < 65536  // as many as 32 bits can hold the square of
                       ? add_up_small(zeros.squares, some.squares, sign)
                       : add_up_both(zeros.squares, some.squares, sign);
    leaf.inside = criteria.statistic == NO_TEST ? 0.0 : add_up_both(zeros.inside, some.inside, sign);
    // of the cut, so of both leaves: one sum for each half of the lanes
    const double own_sum = add_up_both(informs, squares, sign);
    const double other_sum = __shfl_xor_sync(ALL, own_sum, HALF);
    const double weights = sign ? other_sum : own_sum, squared = sign ? own_sum : other_sum;
    const double effective = squared > 0.0 ? fmax(weights * weights / squared, 1.0) : 1.0;
    // what the ones lack the zeros have too many
    const bool is_weighed = criteria.min_evidence > 0.0;
    const double shift = is_weighed ? add_up<WIDTH>(some.shift) - as_double(total.y) : 0.0;
    leaf.shift = sign ? shift : -shift;
    leaf.replicated =
        (effective >= criteria.unreplicated_below) + (effective >= criteria.replicated_from);
    if (member % HALF == (int)(first & 15) / BATCH) kept[threadIdx.x] = leaf;
  };
  auto finish = [=](i64 first, int lane) {
    const int member = lane % WIDTH;
    const bool sign = member >= HALF;
    const i64 at = first + member % HALF * BATCH + lane / WIDTH;
    const Leaf leaf = at < n ? kept[threadIdx.x] : Leaf{0, 0, 0, 0, 0, 0.0, 0.0};
    const bool is_tested =
        criteria.statistic != NO_TEST && leaf.negatives > 0 && leaf.positives > 0;
    const int dof = is_tested ? leaf.n_columns - 1 : 0;
    double found = 0.0;
    if (dof > 0)
      found = IS_LIKELIHOOD ? find_likelihood(leaf, logarithm)
                            : find_pearson(leaf, criteria.statistic == YATES && dof == 1);
    const int code = judge(criteria, leaf, found, dof);
    const int code_of_ones = __shfl_xor_sync(ALL, code, HALF);
    if (at >= n) return;
    if (statistics) statistics[2 * at + sign] = found, dofs[2 * at + sign] = dof;
    if (sign) totals[at] = make_int2(leaf.negatives, leaf.positives);
    else codes[at] = (u8)(code | code_of_ones << 4);
  };
  bring(take, finish);
}

#define BITS                                                                                 \
  const uint4 *words, i64 n, const uint4 *mask, const int *bounds, const int *tiles, int n_chunks, \
      int n_tiles

template <bool IS_LIKELIHOOD>
__device__ __forceinline__ void judge_words(BITS, CRITERIA_PARAMETERS) {
  auto bring = [=](auto take, auto finish) {
    const int n_segments = 2 * n_environments;
    count_columns(
        words, n, mask, bounds, tiles, n_chunks, n_tiles, n_segments, BATCH, 16, take, finish);
  };
  judge_columns<IS_LIKELIHOOD>(n, bring, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, BLOCKS) judge_bits(BITS, CRITERIA_PARAMETERS) {
  judge_words<false>(words, n, mask, bounds, tiles, n_chunks, n_tiles, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, BLOCKS) judge_bits_by_likelihood(BITS, CRITERIA_PARAMETERS) {
  judge_words<true>(words, n, mask, bounds, tiles, n_chunks, n_tiles, CRITERIA_ARGUMENTS);
}

// Columns that are counted already: `ones` up to the start of each segment, as `take` wants them.
template <bool IS_LIKELIHOOD>
__device__ __forceinline__ void judge_ones(const int *ones, i64 n, CRITERIA_PARAMETERS) {
  auto bring = [=](auto take, auto finish) {
    const int lane = threadIdx.x & 31, n_warps = blockDim.x >> 5;
    const i64 warp = (i64)blockIdx.x * n_warps + (threadIdx.x >> 5);
    for (i64 first = 16 * warp; first < n; first += 16 * (i64)gridDim.x * n_warps) {
      const i64 end = min(first + 16, n);
      for (i64 at = first; at < end; at += BATCH)
        take(at, (int)min((i64)BATCH, end - at), ones + at * (2 * n_environments + 1), lane);
      finish(first, lane);
    }
  };
  judge_columns<IS_LIKELIHOOD>(n, bring, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, BLOCKS) judge_counts(
    const int *ones, i64 n, CRITERIA_PARAMETERS) {
  judge_ones<false>(ones, n, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(256, BLOCKS) judge_counts_by_likelihood(
    const int *ones, i64 n, CRITERIA_PARAMETERS) {
  judge_ones<true>(ones, n, CRITERIA_ARGUMENTS);
}

// --- what was judged --------------------------------------------------------

extern "C" __global__ void tally_codes(const u8 *codes, i64 n, const i64 *n_copies, u64 *out) {
  u64 tally[N_CODES] = {0};
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    int low = codes[i] & 15, high = codes[i] >> 4;
    u64 weight = n_copies ? n_copies[i] : 1;
#pragma unroll
    for (int c = 0; c < N_CODES; c++) tally[c] += ((low == c) + (high == c)) * weight;
  }
#pragma unroll
  for (int c = 0; c < N_CODES; c++) {
    u64 sum = add_up<32>(tally[c]);
    if ((threadIdx.x & 31) == 0 && sum) atomicAdd(out + c, sum);
  }
}

struct Key {
  i64 utility, margin, order;
};

// Larger utility first, then larger margin, then as ties go.
__device__ __forceinline__ bool precedes(const Key &a, const Key &b) {
  if (a.utility != b.utility) return a.utility > b.utility;
  if (a.margin != b.margin) return a.margin > b.margin;
  return a.order < b.order;
}

// For each block the first candidate after a given one, of those with a code that is wanted.
extern "C" __global__ void find_next(
    const int2 *totals, const u8 *codes, i64 n, int n_negative, int n_positive, i64 p_numerator, i64 p_denominator,
    u32 wanted, i64 utility, i64 margin, i64 order, i64 *out) {
  __shared__ Key found[256];
  const Key last = {utility, margin, order};
  const i64 smallest = -0x7fffffffffffffffll - 1;
  Key best = {smallest, smallest, 0x7fffffffffffffffll};
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    int code = codes[i];
    if (!((wanted >> (code & 15) | wanted >> (code >> 4)) & 1)) continue;
    int2 some = totals[i];
#pragma unroll
    for (int sign = 0; sign < 2; sign++) {
      if (!(wanted >> (sign ? code >> 4 : code & 15) & 1)) continue;
      i64 a = sign ? some.x : n_negative - some.x, b = sign ? some.y : n_positive - some.y;
      Key key = {p_denominator * a - p_numerator * b, a - b, 2 * i + sign};
      if (precedes(last, key) && precedes(key, best)) best = key;
    }
  }
  found[threadIdx.x] = best;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step && precedes(found[threadIdx.x + step], found[threadIdx.x]))
      found[threadIdx.x] = found[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    out[3 * blockIdx.x] = found[0].utility;
    out[3 * blockIdx.x + 1] = found[0].margin;
    out[3 * blockIdx.x + 2] = found[0].order;
  }
}

// Columns with a code that is wanted and, if `is_keyed`, such a candidate of this utility and margin;
// in any order. `n_found` goes on counting where `out` is full.
extern "C" __global__ void list_columns(
    const int2 *totals, const u8 *codes, i64 n, int n_negative, int n_positive, i64 p_numerator, i64 p_denominator,
    u32 wanted, int is_keyed, i64 utility, i64 margin, i64 *out, u64 capacity, u64 *n_found) {
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    int code = codes[i];
    if (!((wanted >> (code & 15) | wanted >> (code >> 4)) & 1)) continue;
    bool is_found = !is_keyed;
    if (is_keyed) {
      int2 some = totals[i];
#pragma unroll
      for (int sign = 0; sign < 2; sign++) {
        i64 a = sign ? some.x : n_negative - some.x, b = sign ? some.y : n_positive - some.y;
        bool is_wanted = wanted >> (sign ? code >> 4 : code & 15) & 1;
        is_found |= is_wanted && p_denominator * a - p_numerator * b == utility && a - b == margin;
      }
    }
    if (is_found) {
      u64 at = atomicAdd(n_found, 1ull);
      if (at < capacity) out[at] = i;
    }
  }
}

// --- loading ----------------------------------------------------------------

// Bit i of each column becomes bit source[i] of the words given; a warp a column.
extern "C" __global__ void sort_bits(
    const u32 *words, i64 n, int n_words, const u32 *source, int n_bits, u32 *out, int n_out) {
  const int lane = threadIdx.x & 31;
  const i64 n_warps = (i64)gridDim.x * (blockDim.x >> 5);
  for (i64 c = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5; c < n; c += n_warps) {
    const u32 *column = words + c * n_words;
    for (int w = 0; w < n_out; w++) {
      int i = 32 * w + lane;
      bool is_set = false;
      if (i < n_bits) {
        u32 from = __ldg(source + i);
        is_set = __ldg(column + (from >> 5)) >> (from & 31) & 1;
      }
      u32 word = __ballot_sync(ALL, is_set);
      if (lane == (w & 31)) out[c * n_out + w] = word;
    }
  }
}

// --- bin numbers ------------------------------------------------------------

// out[feature, bin, segment] of some rows; blocks (feature, part of the rows), a histogram a warp.
template <class Code>
__device__ __forceinline__ void count_coded(
    const Code *codes, i64 n_rows, const u32 *rows, const i64 *bounds, int n_segments, int n_bins,
    i64 part, int *out) {
  extern __shared__ uint4 shared[];
  int *own = (int *)shared + (threadIdx.x >> 5) * n_bins;
  const int n_warps = blockDim.x >> 5;
  const Code *column = codes + blockIdx.x * n_rows;
  const i64 first = blockIdx.y * part, last = min(bounds[n_segments], first + part);
  int s = 0;
  for (int low = 0, high = n_segments; low < high;) {  // the last segment that starts here or before
    int middle = (low + high + 1) / 2;
    if (middle < n_segments && bounds[middle] <= first) low = s = middle;
    else high = middle - 1;
  }
  for (; s < n_segments && bounds[s] < last; s++) {
    const i64 start = max(bounds[s], first), stop = min(bounds[s + 1], last);
    if (start >= stop) continue;
    for (int b = threadIdx.x; b < n_bins * n_warps; b += blockDim.x) ((int *)shared)[b] = 0;
    __syncthreads();
    for (i64 i = start + threadIdx.x; i < stop; i += blockDim.x)
      atomicAdd(own + column[rows ? rows[i] : i], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) {
      int sum = 0;
      for (int w = 0; w < n_warps; w++) sum += ((int *)shared)[w * n_bins + b];
      if (sum) atomicAdd(out + ((i64)blockIdx.x * n_bins + b) * n_segments + s, sum);
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(256) count_codes(
    const u8 *codes, i64 n_rows, const u32 *rows, const i64 *bounds, int n_segments, int n_bins,
    i64 part, int *out) {
  count_coded(codes, n_rows, rows, bounds, n_segments, n_bins, part, out);
}

// --- values -----------------------------------------------------------------

__device__ __forceinline__ u64 mix(u64 bits) {
  bits *= 0x9e3779b97f4a7c15ull;
  return bits ^ bits >> 32;
}

// A hash of each row of (column, row), as the engine makes it of numbers.
template <class Number>
__device__ __forceinline__ void hash_rows(
    const Number *values, i64 n_rows, int n_columns, const u64 *salt, u64 *out) {
  const i64 stride = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
    u64 sum = 0;
    for (int j = 0; j < n_columns; j++) {
      double number = (double)values[j * n_rows + i] + 0.0;  // no sign of zero
      u64 bits = number == number ? __double_as_longlong(number) : 0x7ff0000000000000ull;
      sum += mix(mix(bits ^ __ldg(salt + j)));
    }
    out[i] = sum;
  }
}

// The bin of each value of some columns, in the order of the sorted rows; row i comes from
// source[i]. Where a column is known, all its values are edges, or the highest: else it surprises.
template <class Number>
__device__ __forceinline__ void code_values(
    const Number *values, i64 n_rows, const u32 *source, const i64 *columns, const Number *edges,
    int n_most, const int *n_edges, const u8 *known, const Number *highest, u8 *codes,
    u8 *surprised) {
  __shared__ Number own[256];
  const int k = blockIdx.x, n = n_edges[k];
  for (int e = threadIdx.x; e < n; e += blockDim.x) own[e] = edges[(i64)k * n_most + e];
  if (threadIdx.x == 0) own[n] = highest[k];
  __syncthreads();
  const Number *column = values + columns[k] * n_rows;
  const i64 stride = (i64)gridDim.y * blockDim.x;
  bool is_new = false;
  for (i64 i = (i64)blockIdx.y * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
    const Number value = column[source[i]];
    int low = 0;
    for (int high = n; low < high;) {
      const int middle = (low + high) / 2;
      if (own[middle] < value) low = middle + 1;
      else high = middle;
    }
    if (value != value) low = 0;
    codes[k * n_rows + i] = (u8)low;
    is_new |= value == value && own[low] != value;
  }
  if (is_new && known[k]) surprised[k] = 1;
}

#define FOR_NUMBER(Number, suffix)                                                               \
  extern "C" __global__ void hash_rows_##suffix(                                                 \
      const Number *values, i64 n_rows, int n_columns, const u64 *salt, u64 *out) {              \
    hash_rows(values, n_rows, n_columns, salt, out);                                             \
  }                                                                                              \
  extern "C" __global__ void __launch_bounds__(256) code_values_##suffix(                        \
      const Number *values, i64 n_rows, const u32 *source, const i64 *columns,                   \
      const Number *edges, int n_most, const int *n_edges, const u8 *known,                      \
      const Number *highest, u8 *codes, u8 *surprised) {                                         \
    code_values(values, n_rows, source, columns, edges, n_most, n_edges, known, highest, codes,  \
                surprised);                                                                      \
  }

FOR_NUMBER(float, f)
FOR_NUMBER(double, d)
