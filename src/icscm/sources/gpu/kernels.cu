// Kernels of the card; `tests/support/literal/gpu_kernels.py` computes the same in plain NumPy.
//
// Data. Rows are sorted by outcome and environment, and a column has a bit for each of them:
//
//   segment      the rows of one outcome and environment: a run of bits, which begins at any bit
//   word         32 bits of a column
//   chunk        4 words, 16 bytes: what a lane loads at once
//   tile         128 chunks: what a warp holds at a time
//
//   segments     | 0             | 1        | 2                          | 3            ...
//   chunks       | 0   | 1   | 2   | ...                 | 127 | 128 | 129 | ...
//   tiles        | 0                                           | 1                      ...
//
// Threads. The card runs 32 of them together: these are the lanes of a warp, which exchange numbers
// directly. The warps of a block share some fast memory; the blocks of a kernel are its grid.
//
// Rules. There are two on a column, the candidates: one covers the rows whose bit is 1, the other one
// those whose bit is 0. The rows that a candidate covers are its leaf: "the ones" or "the zeros".
//
//   count_columns    a warp counts a column: the ones of each segment
//   judge_columns    WIDTH lanes judge the two candidates of a column by these counts: their codes
//   tally_codes, find_next, list_columns     look for candidates by their codes
//   sort_bits        sorts the rows of columns, before they are counted
//   count_codes      counts columns of bin numbers; code_values makes these of values

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define THREADS 256  // of a block
#ifndef BLOCKS
#define BLOCKS 4  // on a multiprocessor at a time: what the registers of judging allow
#endif
#ifndef WIDTH
#define WIDTH 32  // lanes that judge a column: a power of two, compiled for each
#endif
#define HALF (WIDTH / 2)    // of these lanes: one half for each of the two leaves
#define BATCH (32 / WIDTH)  // columns that a warp judges at a time
#define GROUP 16            // columns that a warp judges in batches: their leaves fill its lanes
#define ALL 0xffffffffu     // all lanes of a warp
#define ROUNDS 4            // chunks that a lane holds at a time
#define TILE (32 * ROUNDS)  // chunks that a warp holds at a time

// What became of a candidate. A column has a code of four bits for each of its two candidates: the
// lower four are those of the candidate that covers the zeros.
enum { NONE, ALLOWED, DEPENDENT, UNREPLICATED, UNHELPFUL, OPEN, N_CODES };
enum { NO_TEST, PEARSON, YATES, LIKELIHOOD };

// --- counting ---------------------------------------------------------------
//
// The ones of each word are counted, and summed up along the column: so many ones are before each word.
// A segment's count is the difference between the ones before its end and those before its start, at
// whatever bits these lie.

// Loads a tile of a column into the registers of a warp: in each round, every lane loads the chunk next
// to that of the lane before. Beyond the column's end are zeros.
__device__ __forceinline__ void load_tile(
    uint4 (&tile)[ROUNDS], const uint4 *column, int first_chunk, int n_chunks, int lane) {
#pragma unroll
  for (int round = 0; round < ROUNDS; round++) {
    int chunk = first_chunk + 32 * round + lane;
    tile[round] = chunk < n_chunks ? __ldcs(column + chunk) : make_uint4(0, 0, 0, 0);
  }
}

// Sum over the lanes up to this one, of two numbers below 2^16 at once.
__device__ __forceinline__ u32 sum_up_to(u32 value, int lane) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    u32 value_before = __shfl_up_sync(ALL, value, step);
    if (lane >= step) value += value_before;
  }
  return value;
}

// The ones of the tile before each of a chunk's four words. With `start` of them before the chunk, and
// a, b, c ones in its first three words:
//
//   inside     bits of 32:   a | a + b | a + b + c | 0                            8 bits each
//   result     of 64:        start | start + a | start + a + b | start + a + b + c   16 bits each
__device__ __forceinline__ uint2 spread(u32 start, u32 inside) {
  const u32 start_twice = start | start << 16;
  return make_uint2(
      start_twice + ((inside & 0xff) << 16),
      start_twice + ((inside >> 8 & 0xff) | (inside & 0xff0000)));
}

// Counts columns of bits. Each warp takes a group of `group` columns at a time, and of these a batch of
// `batch`. It leaves the ones before the start of each segment in its part of the shared memory,
// n_segments + 1 numbers a column, and calls
//
//   take_batch(first column, number of columns, their ones, lane)     after each batch
//   finish_group(first column, lane)                                  after the last of a group
//
// `mask` has a bit for each row that is counted, `bounds` the bits at which segments start, and `tiles`
// the first segment that starts in each tile.
//
// A column is read tile by tile. Of a tile, all lanes do together:
//
//   1. each lane counts the ones in the words of its four chunks
//   2. the lanes sum these up: the ones of the tile before each word go to the shared memory
//   3. each lane starts to load its chunks of the next tile, which takes until they are needed
//   4. each lane looks up every 32nd of the segments that start in the tile
//
// Shared memory of a block of n warps, each with a tile of its own:
//
//   chunks of warp 0 | ... of warp n - 1       TILE chunks each, masked
//   ones before each word, of all warps        16 bits for each word, which a tile's ones fit
//   ones before each segment, of all warps     batch * (n_segments + 1) numbers each
template <class TakeBatch, class FinishGroup>
__device__ __forceinline__ void count_columns(
    const uint4 *words, i64 n_columns, const uint4 *mask, const int *bounds, const int *tiles,
    int n_chunks, int n_tiles, int n_segments, int batch, int group, TakeBatch take_batch,
    FinishGroup finish_group) {
  extern __shared__ uint4 shared[];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int n_warps = blockDim.x >> 5;

  uint4 *chunks = shared + warp * TILE;
  uint2 *ones_before = (uint2 *)(shared + n_warps * TILE) + warp * TILE;
  const u32 *words_of_tile = (const u32 *)chunks;
  const u16 *ones_before_word = (const u16 *)ones_before;
  int *ones_of_batch = (int *)((uint2 *)(shared + n_warps * TILE) + n_warps * TILE);
  ones_of_batch += warp * batch * (n_segments + 1);

  // the columns of all warps are dealt out group by group
  const i64 stride = (i64)gridDim.x * n_warps * group;
  uint4 tile[ROUNDS];
  i64 first = ((i64)blockIdx.x * n_warps + warp) * group;
  if (first >= n_columns) return;
  load_tile(tile, words + first * n_chunks, 0, n_chunks, lane);

  for (; first < n_columns; first += stride) {
    const i64 end = min(first + group, n_columns);
    for (i64 column = first; column < end; column++) {
      const int place = (int)(column - first) & (batch - 1);  // in the batch: a power of two
      int *ones = ones_of_batch + place * (n_segments + 1);
      int ones_before_tile = 0;
      for (int t = 0; t < n_tiles; t++) {
        // 1. count the ones of this lane's chunks
        u32 counts[ROUNDS], inside[ROUNDS];
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
          // from the cache: held in registers, the mask would leave too few for judging
          const int chunk = t * TILE + 32 * round + lane;
          uint4 word = tile[round];
          uint4 counted = chunk < n_chunks ? __ldg(mask + chunk) : word;
          word.x &= counted.x;
          word.y &= counted.y;
          word.z &= counted.z;
          word.w &= counted.w;
          const u32 ones_of_1 = __popc(word.x);
          const u32 ones_of_2 = ones_of_1 + __popc(word.y);
          const u32 ones_of_3 = ones_of_2 + __popc(word.z);
          counts[round] = ones_of_3 + __popc(word.w);
          inside[round] = ones_of_1 | ones_of_2 << 8 | ones_of_3 << 16;
          chunks[32 * round + lane] = word;
        }

        // 2. sum up over the lanes, two rounds at once: one in the lower 16 bits, one in the upper
        u32 ones_in_tile = 0;
#pragma unroll
        for (int round = 0; round < ROUNDS; round += 2) {
          u32 sums = sum_up_to(counts[round] | counts[round + 1] << 16, lane);
          u32 totals = __shfl_sync(ALL, sums, 31);
          ones_before[32 * round + lane] =
              spread(ones_in_tile + (sums & 0xffff) - counts[round], inside[round]);
          ones_in_tile += totals & 0xffff;
          ones_before[32 * round + 32 + lane] =
              spread(ones_in_tile + (sums >> 16) - counts[round + 1], inside[round + 1]);
          ones_in_tile += totals >> 16;
        }

        // 3. load the next tile: of this column, of the next one, or of the next group
        const bool is_last_tile = t + 1 == n_tiles;
        i64 next = !is_last_tile ? column : column + 1 < end ? column + 1 : first + stride;
        if (next < n_columns) {
          const uint4 *next_words = words + next * n_chunks;
          load_tile(tile, next_words, is_last_tile ? 0 : (t + 1) * TILE, n_chunks, lane);
        }
        __syncwarp();

        // 4. look up the starts of the segments
        for (int s = tiles[t] + lane; s < tiles[t + 1]; s += 32) {
          int bit = __ldg(bounds + s);
          int word = (bit >> 5) - 4 * t * TILE;
          // in the tile, in the words before this one, and in this word before the bit
          ones[s] = ones_before_tile + ones_before_word[word] +
                    __popc(words_of_tile[word] & ((1u << (bit & 31)) - 1));
        }
        ones_before_tile += ones_in_tile;
        __syncwarp();
      }
      // segments that start at the very end, and the end of the last one: all ones are before
      for (int s = tiles[n_tiles] + lane; s <= n_segments; s += 32) ones[s] = ones_before_tile;

      if (place + 1 < batch && column + 1 < end) continue;  // the batch is not full
      __syncwarp();
      take_batch(column - place, place + 1, ones_of_batch, lane);
      __syncwarp();
    }
    finish_group(first, lane);
  }
}

// out[column, segment]: the ones of each segment. A warp takes one column at a time.
extern "C" __global__ void __launch_bounds__(THREADS) count_bits(
    const uint4 *words, i64 n_columns, const uint4 *mask, const int *bounds, const int *tiles,
    int n_chunks, int n_tiles, int n_segments, int *out) {
  auto take_batch = [=](i64 column, int, const int *ones, int lane) {
    for (int s = lane; s < n_segments; s += 32)
      out[column * n_segments + s] = ones[s + 1] - ones[s];
  };
  auto finish_group = [](i64, int) {};
  count_columns(
      words, n_columns, mask, bounds, tiles, n_chunks, n_tiles, n_segments, 1, 1, take_batch,
      finish_group);
}

// --- judging ----------------------------------------------------------------
//
// A warp judges GROUP columns, BATCH at a time, each with WIDTH lanes. With WIDTH = 8, for example:
//
//   lanes of a batch     0 .. 3 | 4 .. 7     8 .. 11 | 12 .. 15     ...     28 .. 31
//   column of the batch  0                   1                      ...     3
//   leaf in the end      zeros  | ones       zeros   | ones         ...     ones
//
// Each of a column's lanes adds up some of the environments for both leaves. Sums over its lanes make
// these the whole leaves, of which one half of the lanes keeps the zeros and the other one the ones.
// After each batch one lane of each half stores its leaf. After the last one there is a leaf for each
// lane of the warp, so that all 32 are judged at once:
//
//   HALF batches of BATCH columns  =  GROUP columns  =  32 leaves

// The sum over N lanes, in each of them.
template <int N, class Number>
__device__ __forceinline__ Number add_up(Number value) {
#pragma unroll
  for (int step = N / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// Two sums at once over the lanes of a column: of `low` for the lower half of them, of `high` for the
// upper. Lanes HALF apart first give each other what they do not keep; then each half adds up its own.
template <class Number>
__device__ __forceinline__ Number add_up_both(Number low, Number high, bool is_upper) {
  const Number sent = is_upper ? low : high;
  const Number kept = is_upper ? high : low;
  return add_up<HALF>(kept + __shfl_xor_sync(ALL, sent, HALF));
}

// The same of what 32 bits can hold: there newer cards have one instruction for all lanes of a warp.
__device__ __forceinline__ u32 add_up_small(u32 low, u32 high, bool is_upper) {
#if WIDTH == 32 && __CUDA_ARCH__ >= 800
  const u32 sum_of_low = __reduce_add_sync(ALL, low);
  const u32 sum_of_high = __reduce_add_sync(ALL, high);
  return is_upper ? sum_of_high : sum_of_low;
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

// Whether enough environments have information on a cut; between the two rounding could decide.
enum { NOT_REPLICATED, PERHAPS_REPLICATED, REPLICATED };

// One leaf, or this lane's share of it, added up over its environments.
struct Leaf {
  int negatives, positives;
  int n_environments;  // that have rows in it: the columns of its table, of which a test is made
  int replicated;      // whether its cut is: NOT_REPLICATED, ...
  u64 squares;         // the sum of the squares of its sizes by environment
  double environment_sum;  // what its statistic is made of, see `find_pearson`, `find_likelihood`
  double shift;            // by how many its positives are fewer than chance gives it
};

// A whole number from 0 on. By bits, since the card converts few numbers at a time.
__device__ __forceinline__ double as_double(int number) {
  return __hiloint2double(0x43300000, number) - 4503599627370496.0;
}

// 1 / number, to 1.5e-14 of it, where `same` is the same number: a guess of few bits, then one step of
// Newton's method for 1 / x - number = 0.
__device__ __forceinline__ double invert(double number, int same) {
  float guess;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"((float)same));
  const u32 bits = __float_as_uint(guess);
  const double near = __hiloint2double((bits >> 3) + 0x38000000, bits << 29);
  return fma(near, fma(-number, near, 1.0), near);
}

// a b / n of one environment, with a negatives, b positives and n rows. Sums of these over environments
// give the statistics: so nothing waits for what only all environments of a column tell.
__device__ __forceinline__ double weigh(int negatives, int positives) {
  const int size = max(negatives + positives, 1);
  return as_double(negatives) * as_double(positives) * invert(as_double(size), size);
}

// x log x, from a table where it reaches so far.
struct Logarithms {
  const double *table;  // by x
  int n_in_table;

  __device__ __forceinline__ double operator()(int x) const {
    return x < n_in_table ? __ldg(table + x) : x * log((double)x);
  }

  // a log a + b log b - n log n of one environment
  __device__ __forceinline__ double weigh(int negatives, int positives) const {
    return (*this)(negatives) + (*this)(positives) - (*this)(negatives + positives);
  }
};

// Pearson's chi-squared of outcome and environment. With a negatives, b positives and n rows in an
// environment, A, B and N in all of them:  N (1 - N / (A B) sum(a b / n)).
// Yates' correction of two environments takes 1/2 from |b - n B / N|, which is the same in both.
__device__ __forceinline__ double find_pearson(const Leaf &leaf, bool is_corrected) {
  const double A = leaf.negatives;
  const double B = leaf.positives;
  const double N = A + B;
  const double statistic = fmax(N * (1.0 - N * leaf.environment_sum / (A * B)), 0.0);
  if (!is_corrected) return statistic;
  const u64 total = leaf.negatives + leaf.positives;
  // the integer is the product of the two environments' sizes
  const double scale = N * N * N / (A * B * (double)((total * total - leaf.squares) / 2));
  const double off = fmax(sqrt(statistic / scale) - 0.5, 0.0);
  return off * off * scale;
}

// The likelihood ratio, with f(x) = x log x:  2 (sum(f(a) + f(b) - f(n)) - (f(A) + f(B) - f(N))).
__device__ __forceinline__ double find_likelihood(const Leaf &leaf, const Logarithms &f) {
  return fmax(2.0 * (leaf.environment_sum - f.weigh(leaf.negatives, leaf.positives)), 0.0);
}

// Whether the evidence of a leaf is what is helpful at least, or more: half the deviance of the outcomes
// of the leaf, and of the other rows in play, from those by chance,  sum(n log(n / by chance)).
// A cell that is many times that by chance multiplies rounding as often: then the code is OPEN.
__device__ __forceinline__ int judge_evidence(const Criteria &criteria, const Leaf &leaf) {
  if (criteria.min_evidence <= 0.0) return ALLOWED;
  double evidence = 0.0;
  double largest_ratio = 1.0;
  if (leaf.shift > 0.0) {
    // the first two are smaller than by chance, the others larger
    const int cells[4] = {leaf.positives, criteria.n_negative - leaf.negatives, leaf.negatives,
                          criteria.n_positive - leaf.positives};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (cells[i] == 0) continue;
      const double n = cells[i];
      const double by_chance = i < 2 ? n + leaf.shift : n - leaf.shift;
      const double ratio = n / fmax(by_chance, 1e-300);
      evidence += n * log(ratio);
      largest_ratio = fmax(largest_ratio, ratio);
    }
  }
  const double excess = evidence - criteria.min_evidence;
  if (fabs(excess) <= criteria.evidence_slack * largest_ratio) return OPEN;
  return excess < 0.0 ? UNHELPFUL : ALLOWED;
}

// What becomes of a candidate, given its leaf and the statistic of its test: the first reason that holds
// to reject it, or OPEN where rounding could decide whether it does.
__device__ __forceinline__ int judge(
    const Criteria &criteria, const Leaf &leaf, double statistic, int dof) {
  int size = leaf.negatives + leaf.positives;
  int n_all = criteria.n_negative + criteria.n_positive;
  if (leaf.negatives == 0 || size >= n_all) return NONE;

  // the test of dependence of outcome and environment
  if (criteria.statistic != NO_TEST && dof > 0) {
    if (statistic >= criteria.fails_from[dof]) return DEPENDENT;
    if (!(statistic < criteria.passes_below[dof])) return OPEN;
  }

  // the effective number of environments
  if (leaf.replicated < REPLICATED)
    return leaf.replicated == NOT_REPLICATED ? UNREPLICATED : OPEN;

  // the utility, and the evidence against chance
  i64 utility = criteria.p_denominator * leaf.negatives - criteria.p_numerator * leaf.positives;
  return utility < criteria.min_utility ? UNHELPFUL : judge_evidence(criteria, leaf);
}

// The fields of `Segments` and `CandidateCriteria` in Python, and where the results go: `totals` are the
// ones of each column by outcome, negatives first; `codes` what became of its two candidates. Where
// `statistics` is given, these and the degrees of freedom are written too, (column, leaf).
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

// Judges the two candidates of each column. `visit` counts columns, and calls the two functions that it
// is given as `count_columns` does, with GROUP columns in a group and BATCH in a batch.
template <bool IS_LIKELIHOOD, class Visit>
__device__ __forceinline__ void judge_columns(i64 n_columns, Visit visit, CRITERIA_PARAMETERS) {
  const Criteria criteria = {
      p_numerator,  p_denominator,  min_utility, unreplicated_below, replicated_from,
      min_evidence, evidence_slack, passes_below, fails_from,
      statistic,    is_inverted,    n_negative,   n_positive};
  const int n_all = n_negative + n_positive;
  const Logarithms logarithms_of = {logarithms, n_logarithms};
  __shared__ Leaf leaves[THREADS];  // one for each lane: the 32 leaves of its warp's group

  // Add up the leaves of a batch. Of a column's lanes, lane `member` takes the environments member,
  // member + WIDTH, ...; in the end the upper half keeps the leaf of the ones, the lower half that of
  // the zeros. `ones_of_batch` are the ones before the start of each segment, see `count_columns`.
  auto take_batch = [=](i64 first, int n_in_batch, const int *ones_of_batch, int lane) {
    const int place = lane / WIDTH;
    const int member = lane % WIDTH;
    const bool is_of_ones = member >= HALF;
    // lanes without a column of their own do as those of the first, and are not looked at
    const int *column_ones =
        ones_of_batch + (place < n_in_batch ? place : 0) * (2 * n_environments + 1);
    // the first segment of each outcome
    const int negative = criteria.is_inverted ? n_environments : 0;
    const int positive = n_environments - negative;

    // this lane's share of both leaves
    Leaf zeros = {0, 0, 0, 0, 0, 0.0, 0.0};
    Leaf ones = {0, 0, 0, 0, 0, 0.0, 0.0};
    double weight_sum = 0.0;
    double squared_weight_sum = 0.0;
#pragma unroll 1  // more at once would take too many registers
    for (int k = member; k < n_environments; k += WIDTH) {
      // a, b: negatives and positives among the ones; c, d: among the zeros
      const int a = column_ones[negative + k + 1] - column_ones[negative + k];
      const int b = column_ones[positive + k + 1] - column_ones[positive + k];
      const int c = __ldg(n_rows + negative + k) - a;
      const int d = __ldg(n_rows + positive + k) - b;
      const u32 n_ones = a + b;
      const u32 n_zeros = c + d;
      ones.negatives += a;
      ones.positives += b;
      ones.n_environments += n_ones > 0;
      zeros.n_environments += n_zeros > 0;
      ones.squares += (u64)n_ones * n_ones;
      zeros.squares += (u64)n_zeros * n_zeros;
      // of the environment in the effective number of environments, see below
      const double weight =
          as_double(n_ones) * as_double(n_zeros) * __ldg(replication_factors + k);
      weight_sum += weight;
      squared_weight_sum += weight * weight;
      // by chance so many of its ones are positive
      ones.shift += as_double(n_ones) * __ldg(positive_rates + k);
      if (criteria.statistic != NO_TEST) {
        ones.environment_sum += IS_LIKELIHOOD ? logarithms_of.weigh(a, b) : weigh(a, b);
        zeros.environment_sum += IS_LIKELIHOOD ? logarithms_of.weigh(c, d) : weigh(c, d);
      }
    }

    // The sums over the lanes. The lower half of these adds up the negatives of the ones, the upper
    // half the positives; what the zeros have is the rest of all rows.
    const int half_total = add_up_small(ones.negatives, ones.positives, is_of_ones);
    const int half_total_of_others = __shfl_xor_sync(ALL, half_total, HALF);
    const int2 total = is_of_ones ? make_int2(half_total_of_others, half_total)
                                  : make_int2(half_total, half_total_of_others);
    Leaf leaf;
    leaf.negatives = is_of_ones ? total.x : n_negative - total.x;
    leaf.positives = is_of_ones ? total.y : n_positive - total.y;
    leaf.n_environments = add_up_small(zeros.n_environments, ones.n_environments, is_of_ones);
    leaf.squares = n_all < 65536  // as many as 32 bits can hold the square of
                       ? add_up_small(zeros.squares, ones.squares, is_of_ones)
                       : add_up_both(zeros.squares, ones.squares, is_of_ones);
    leaf.environment_sum = criteria.statistic == NO_TEST
                      ? 0.0
                      : add_up_both(zeros.environment_sum, ones.environment_sum, is_of_ones);

    // The effective number of environments, (sum w)^2 / sum w^2, is that of the cut, so of both
    // leaves: one sum for each half of the lanes.
    const double half_sum = add_up_both(weight_sum, squared_weight_sum, is_of_ones);
    const double half_sum_of_others = __shfl_xor_sync(ALL, half_sum, HALF);
    const double w = is_of_ones ? half_sum_of_others : half_sum;
    const double w_squared = is_of_ones ? half_sum : half_sum_of_others;
    const double n_effective = w_squared > 0.0 ? fmax(w * w / w_squared, 1.0) : 1.0;

    // Positives by chance less those there are: what the ones lack the zeros have too many.
    const bool is_weighed = criteria.min_evidence > 0.0;
    const double shift = is_weighed ? add_up<WIDTH>(ones.shift) - as_double(total.y) : 0.0;
    leaf.shift = is_of_ones ? shift : -shift;
    leaf.replicated = (n_effective >= criteria.unreplicated_below) +
                      (n_effective >= criteria.replicated_from);

    // one lane of each half stores its leaf: the first after the first batch, and so on
    const int batch_of_group = (int)(first & (GROUP - 1)) / BATCH;
    if (member % HALF == batch_of_group) leaves[threadIdx.x] = leaf;
  };

  // Judge the leaves of a group, one in each lane, and write what became of them.
  auto finish_group = [=](i64 first, int lane) {
    const int member = lane % WIDTH;
    const bool is_of_ones = member >= HALF;
    const i64 column = first + member % HALF * BATCH + lane / WIDTH;
    const Leaf leaf =
        column < n_columns ? leaves[threadIdx.x] : Leaf{0, 0, 0, 0, 0, 0.0, 0.0};
    const bool is_tested =
        criteria.statistic != NO_TEST && leaf.negatives > 0 && leaf.positives > 0;
    const int dof = is_tested ? leaf.n_environments - 1 : 0;
    double value = 0.0;
    if (dof > 0)
      value = IS_LIKELIHOOD ? find_likelihood(leaf, logarithms_of)
                            : find_pearson(leaf, criteria.statistic == YATES && dof == 1);
    const int code = judge(criteria, leaf, value, dof);
    const int code_of_ones = __shfl_xor_sync(ALL, code, HALF);
    if (column >= n_columns) return;
    if (statistics) {
      statistics[2 * column + is_of_ones] = value;
      dofs[2 * column + is_of_ones] = dof;
    }
    if (is_of_ones) totals[column] = make_int2(leaf.negatives, leaf.positives);
    else codes[column] = (u8)(code | code_of_ones << 4);
  };
  visit(take_batch, finish_group);
}

#define BITS                                                                                    \
  const uint4 *words, i64 n_columns, const uint4 *mask, const int *bounds, const int *tiles,     \
      int n_chunks, int n_tiles

// Columns of bits, which are counted first.
template <bool IS_LIKELIHOOD>
__device__ __forceinline__ void judge_words(BITS, CRITERIA_PARAMETERS) {
  auto visit = [=](auto take_batch, auto finish_group) {
    const int n_segments = 2 * n_environments;
    count_columns(
        words, n_columns, mask, bounds, tiles, n_chunks, n_tiles, n_segments, BATCH, GROUP,
        take_batch, finish_group);
  };
  judge_columns<IS_LIKELIHOOD>(n_columns, visit, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) judge_bits(BITS, CRITERIA_PARAMETERS) {
  judge_words<false>(words, n_columns, mask, bounds, tiles, n_chunks, n_tiles, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) judge_bits_by_likelihood(
    BITS, CRITERIA_PARAMETERS) {
  judge_words<true>(words, n_columns, mask, bounds, tiles, n_chunks, n_tiles, CRITERIA_ARGUMENTS);
}

// Columns that are counted already: `ones` before the start of each segment, as `take_batch` wants them.
template <bool IS_LIKELIHOOD>
__device__ __forceinline__ void judge_ones(const int *ones, i64 n_columns, CRITERIA_PARAMETERS) {
  auto visit = [=](auto take_batch, auto finish_group) {
    const int lane = threadIdx.x & 31;
    const int n_warps = blockDim.x >> 5;
    const i64 warp = (i64)blockIdx.x * n_warps + (threadIdx.x >> 5);
    for (i64 first = GROUP * warp; first < n_columns; first += GROUP * (i64)gridDim.x * n_warps) {
      const i64 end = min(first + GROUP, n_columns);
      for (i64 column = first; column < end; column += BATCH) {
        const int n_in_batch = (int)min((i64)BATCH, end - column);
        take_batch(column, n_in_batch, ones + column * (2 * n_environments + 1), lane);
      }
      finish_group(first, lane);
    }
  };
  judge_columns<IS_LIKELIHOOD>(n_columns, visit, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) judge_counts(
    const int *ones, i64 n_columns, CRITERIA_PARAMETERS) {
  judge_ones<false>(ones, n_columns, CRITERIA_ARGUMENTS);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) judge_counts_by_likelihood(
    const int *ones, i64 n_columns, CRITERIA_PARAMETERS) {
  judge_ones<true>(ones, n_columns, CRITERIA_ARGUMENTS);
}

// --- what was judged --------------------------------------------------------
//
// A thread looks at one column, then at the one as many further on as there are threads, and so on.

// out[code]: how many candidates have it, identical columns counted `n_copies` times where it is given.
extern "C" __global__ void tally_codes(const u8 *codes, i64 n, const i64 *n_copies, u64 *out) {
  u64 tally[N_CODES] = {0};
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    int of_zeros = codes[i] & 15;
    int of_ones = codes[i] >> 4;
    u64 weight = n_copies ? n_copies[i] : 1;
#pragma unroll
    for (int c = 0; c < N_CODES; c++) tally[c] += ((of_zeros == c) + (of_ones == c)) * weight;
  }
#pragma unroll
  for (int c = 0; c < N_CODES; c++) {
    u64 sum = add_up<32>(tally[c]);
    if ((threadIdx.x & 31) == 0 && sum) atomicAdd(out + c, sum);
  }
}

// The code of one of the two candidates on a column.
__device__ __forceinline__ int unpack(int codes, bool is_of_ones) {
  return is_of_ones ? codes >> 4 : codes & 15;
}

// Whether a code is wanted; `wanted` has a bit for each code.
__device__ __forceinline__ bool is_wanted(u32 wanted, int code) { return wanted >> code & 1; }

// Whether any of the two candidates on a column has a wanted code.
__device__ __forceinline__ bool is_any_wanted(u32 wanted, int codes) {
  return (wanted >> (codes & 15) | wanted >> (codes >> 4)) & 1;
}

// A candidate's rank, as `Key` in Python.
struct Key {
  i64 utility, margin, order;
};

// What the utility of a candidate is made of: the rows in play by outcome, and the cost of a positive.
struct Scale {
  int n_negative, n_positive;
  i64 p_numerator, p_denominator;
};

// The key of one of the two candidates on a column, which has so many ones of each outcome.
__device__ __forceinline__ Key make_key(i64 column, int2 ones, bool is_of_ones, const Scale &scale) {
  const i64 negatives = is_of_ones ? ones.x : scale.n_negative - ones.x;
  const i64 positives = is_of_ones ? ones.y : scale.n_positive - ones.y;
  const i64 utility = scale.p_denominator * negatives - scale.p_numerator * positives;
  return {utility, negatives - positives, 2 * column + is_of_ones};
}

// Whether a comes before b: larger utility first, then larger margin, then as ties go.
__device__ __forceinline__ bool precedes(const Key &a, const Key &b) {
  if (a.utility != b.utility) return a.utility > b.utility;
  if (a.margin != b.margin) return a.margin > b.margin;
  return a.order < b.order;
}

// out[block]: the key of the first candidate after the one that is given, among the candidates that the
// block looks at. Only those with a wanted code count; `wanted` has a bit for each code. Where there is
// none, the order in the key is the largest number.
extern "C" __global__ void find_next(
    const int2 *totals, const u8 *codes, i64 n, int n_negative, int n_positive,
    i64 p_numerator, i64 p_denominator, u32 wanted, i64 utility, i64 margin, i64 order, i64 *out) {
  __shared__ Key best_of_threads[THREADS];
  const Key last = {utility, margin, order};
  const Scale scale = {n_negative, n_positive, p_numerator, p_denominator};
  const i64 smallest = -0x7fffffffffffffffll - 1;
  Key best = {smallest, smallest, 0x7fffffffffffffffll};
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    int codes_of_column = codes[i];
    if (!is_any_wanted(wanted, codes_of_column)) continue;
    int2 ones = totals[i];
#pragma unroll
    for (int is_of_ones = 0; is_of_ones < 2; is_of_ones++) {
      if (!is_wanted(wanted, unpack(codes_of_column, is_of_ones))) continue;
      Key key = make_key(i, ones, is_of_ones, scale);
      if (precedes(last, key) && precedes(key, best)) best = key;
    }
  }

  // the first of all threads of the block, half as many at each step
  best_of_threads[threadIdx.x] = best;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step &&
        precedes(best_of_threads[threadIdx.x + step], best_of_threads[threadIdx.x]))
      best_of_threads[threadIdx.x] = best_of_threads[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    out[3 * blockIdx.x] = best_of_threads[0].utility;
    out[3 * blockIdx.x + 1] = best_of_threads[0].margin;
    out[3 * blockIdx.x + 2] = best_of_threads[0].order;
  }
}

// Lists columns of which a candidate has a wanted code and, if `is_keyed`, this utility and margin; in
// any order. `n_listed` goes on counting where `out` is full.
extern "C" __global__ void list_columns(
    const int2 *totals, const u8 *codes, i64 n, int n_negative, int n_positive,
    i64 p_numerator, i64 p_denominator, u32 wanted, int is_keyed, i64 utility, i64 margin, i64 *out,
    u64 capacity, u64 *n_listed) {
  const Scale scale = {n_negative, n_positive, p_numerator, p_denominator};
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    int codes_of_column = codes[i];
    if (!is_any_wanted(wanted, codes_of_column)) continue;
    bool is_listed = !is_keyed;
    if (is_keyed) {
      int2 ones = totals[i];
#pragma unroll
      for (int is_of_ones = 0; is_of_ones < 2; is_of_ones++) {
        Key key = make_key(i, ones, is_of_ones, scale);
        is_listed |= is_wanted(wanted, unpack(codes_of_column, is_of_ones)) &&
                     key.utility == utility && key.margin == margin;
      }
    }
    if (is_listed) {
      u64 place = atomicAdd(n_listed, 1ull);
      if (place < capacity) out[place] = i;
    }
  }
}

// --- loading ----------------------------------------------------------------

// Sorts the rows of columns, a warp a column: bit i of `out` is bit bit_of_row[i] of `words`. Each lane
// looks up one of the 32 bits of a word, which the warp then gathers, and one of the lanes writes.
extern "C" __global__ void sort_bits(
    const u32 *words, i64 n_columns, int n_words, const u32 *bit_of_row, int n_bits, u32 *out,
    int n_words_out) {
  const int lane = threadIdx.x & 31;
  const i64 n_warps = (i64)gridDim.x * (blockDim.x >> 5);
  const i64 first = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  for (i64 c = first; c < n_columns; c += n_warps) {
    const u32 *column = words + c * n_words;
    for (int w = 0; w < n_words_out; w++) {
      int bit = 32 * w + lane;
      bool is_set = false;
      if (bit < n_bits) {
        u32 unsorted_bit = __ldg(bit_of_row + bit);
        is_set = __ldg(column + (unsorted_bit >> 5)) >> (unsorted_bit & 31) & 1;
      }
      u32 word = __ballot_sync(ALL, is_set);
      if (lane == (w & 31)) out[c * n_words_out + w] = word;
    }
  }
}

// --- bin numbers ------------------------------------------------------------

// out[column, bin, segment]: how many rows are in each bin. `rows` are those that count; 0 for all.
//
// A block counts a part of the rows of one column, segment by segment: blockIdx.x is the column, and
// blockIdx.y the part. Each of its warps has a histogram of its own, in the shared memory, so that few
// threads add to the same number at a time:
//
//   histogram of warp 0 | of warp 1 | ...       n_bins numbers each
template <class Code>
__device__ __forceinline__ void count_coded(
    const Code *codes, i64 n_rows, const u32 *rows, const i64 *bounds, int n_segments, int n_bins,
    i64 part_rows, int *out) {
  extern __shared__ uint4 shared[];
  int *histogram = (int *)shared + (threadIdx.x >> 5) * n_bins;
  const int n_warps = blockDim.x >> 5;
  const Code *column = codes + blockIdx.x * n_rows;
  const i64 first = blockIdx.y * part_rows;
  const i64 last = min(bounds[n_segments], first + part_rows);

  // the last segment that starts at the first row of this part, or before
  int s = 0;
  for (int low = 0, high = n_segments; low < high;) {
    int middle = (low + high + 1) / 2;
    if (middle < n_segments && bounds[middle] <= first) low = s = middle;
    else high = middle - 1;
  }

  for (; s < n_segments && bounds[s] < last; s++) {
    const i64 start = max(bounds[s], first);
    const i64 stop = min(bounds[s + 1], last);
    if (start >= stop) continue;

    // clear the histograms, fill them, and add them up
    for (int b = threadIdx.x; b < n_bins * n_warps; b += blockDim.x) ((int *)shared)[b] = 0;
    __syncthreads();
    for (i64 i = start + threadIdx.x; i < stop; i += blockDim.x)
      atomicAdd(histogram + column[rows ? rows[i] : i], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) {
      int sum = 0;
      for (int w = 0; w < n_warps; w++) sum += ((int *)shared)[w * n_bins + b];
      if (sum) atomicAdd(out + ((i64)blockIdx.x * n_bins + b) * n_segments + s, sum);
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) count_codes(
    const u8 *codes, i64 n_rows, const u32 *rows, const i64 *bounds, int n_segments, int n_bins,
    i64 part_rows, int *out) {
  count_coded(codes, n_rows, rows, bounds, n_segments, n_bins, part_rows, out);
}

// --- values -----------------------------------------------------------------

// Spreads differences of the lower bits over all, as `mix` of `icscm.engine._kernels.hashing`.
__device__ __forceinline__ u64 mix(u64 bits) {
  bits *= 0x9e3779b97f4a7c15ull;
  return bits ^ bits >> 32;
}

// out[row]: a hash of the row's values (column, row), as the engine makes it of numbers. A thread takes
// one row after the other.
template <class Number>
__device__ __forceinline__ void hash_rows(
    const Number *values, i64 n_rows, int n_columns, const u64 *salt, u64 *out) {
  const i64 stride = (i64)gridDim.x * blockDim.x;
  for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n_rows; row += stride) {
    u64 sum = 0;
    for (int j = 0; j < n_columns; j++) {
      double number = (double)values[j * n_rows + row] + 0.0;  // no sign of zero
      u64 bits = number == number ? __double_as_longlong(number) : 0x7ff0000000000000ull;
      sum += mix(mix(bits ^ __ldg(salt + j)));
    }
    out[row] = sum;
  }
}

// codes[column, sorted row]: the bin of each value of some columns: how many edges are below it. Sorted
// row i is row row_of_sorted[i]; missing values are in bin 0.
//
// A block codes some rows of one column: blockIdx.x is the place of the column in `columns`, and the
// blocks of all blockIdx.y share its rows. The column's edges, and its highest value after them, go to
// the shared memory first.
//
// Of a column that is `known` all values should be edges, or the highest: if one is not, the column is
// marked as surprised.
template <class Number>
__device__ __forceinline__ void code_values(
    const Number *values, i64 n_rows, const u32 *row_of_sorted, const i64 *columns,
    const Number *edges, int max_edges, const int *n_edges, const u8 *known, const Number *highest,
    u8 *codes, u8 *surprised) {
  __shared__ Number edges_and_highest[256];  // as many as a byte can number
  const int k = blockIdx.x;
  const int n = n_edges[k];
  for (int e = threadIdx.x; e < n; e += blockDim.x)
    edges_and_highest[e] = edges[(i64)k * max_edges + e];
  if (threadIdx.x == 0) edges_and_highest[n] = highest[k];
  __syncthreads();

  const Number *column = values + columns[k] * n_rows;
  const i64 stride = (i64)gridDim.y * blockDim.x;
  bool is_new = false;
  for (i64 i = (i64)blockIdx.y * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
    const Number value = column[row_of_sorted[i]];
    int low = 0;  // how many edges are below the value
    for (int high = n; low < high;) {
      const int middle = (low + high) / 2;
      if (edges_and_highest[middle] < value) low = middle + 1;
      else high = middle;
    }
    if (value != value) low = 0;
    codes[k * n_rows + i] = (u8)low;
    is_new |= value == value && edges_and_highest[low] != value;
  }
  if (is_new && known[k]) surprised[k] = 1;
}

// Kernels for float (f) and double (d).
#define FOR_NUMBER(Number, suffix)                                                               \
  extern "C" __global__ void hash_rows_##suffix(                                                 \
      const Number *values, i64 n_rows, int n_columns, const u64 *salt, u64 *out) {              \
    hash_rows(values, n_rows, n_columns, salt, out);                                             \
  }                                                                                              \
  extern "C" __global__ void __launch_bounds__(THREADS) code_values_##suffix(                    \
      const Number *values, i64 n_rows, const u32 *row_of_sorted, const i64 *columns,            \
      const Number *edges, int max_edges, const int *n_edges, const u8 *known,                   \
      const Number *highest, u8 *codes, u8 *surprised) {                                         \
    code_values(values, n_rows, row_of_sorted, columns, edges, max_edges, n_edges, known,        \
                highest, codes, surprised);                                                      \
  }

FOR_NUMBER(float, f)
FOR_NUMBER(double, d)
