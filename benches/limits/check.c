/* The limits once more, by another compiler: multiply-adds, products of words, exponentials, copy, sum, on one thread and on all.
 *
 *   cc -O3 -march=native -pthread check.c -o check && ./check
 *   ./check answer        reads lines such as `read 16777216 1 20`: so many elements, threads and times; answers each
 *                         with its rate in billions a second
 *
 * `cargo bench -- check` compiles it, and measures by turns with it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Vectors of the compiler's own extension; intrinsics only where it has no expression for the instruction. */
#if defined(__AVX512F__)
#define LANES 16
#define CHAINS 20
#elif defined(__AVX__)
#define LANES 8
#define CHAINS 10
#else
#define LANES 4
#define CHAINS 20
#endif
#define LARGE (16L << 20)
#define STEPS 50000L
#define ARGUMENTS 4096L
#define WALKS 64L
#define SAMPLES 21
#define SAMPLE_TIME 0.02
#define THREADS 64

typedef float vector __attribute__((vector_size(4 * LANES)));
typedef int integers __attribute__((vector_size(4 * LANES)));

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static int ascending(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static float lanes(vector total) {
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += total[lane];
    return sum;
}

static volatile float factor = 0.999f, term = 0.001f, sink;
static float *source, *target;

static void multiply_add(long begin, long end) {
    float by = factor, plus = term;
    vector sums[CHAINS];
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) sums[chain] = (vector){0} + (float)(chain + begin % 2);
    for (long step = 0; step < STEPS; step++) {
#pragma GCC unroll 32
        for (int chain = 0; chain < CHAINS; chain++) sums[chain] = sums[chain] * by + plus;
    }
    vector total = {0};
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) total += sums[chain];
    sink = lanes(total) + (float)end;
}

#if defined(__AVX512VNNI__) && defined(__AVX512BF16__)
/* Four products of bytes a lane, or two of bf16. */
static void byte_words(long begin, long end) {
    __m512i sums[CHAINS], by = _mm512_set1_epi32((int)(factor * 1000));
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) sums[chain] = _mm512_set1_epi32(chain + (int)begin);
    for (long step = 0; step < STEPS; step++) {
#pragma GCC unroll 32
        for (int chain = 0; chain < CHAINS; chain++) {
            /* Of the intrinsic the compiler makes copies. */
            __asm__("vpdpbusd %1, %1, %0" : "+v"(sums[chain]) : "v"(by));
        }
    }
    __m512i total = _mm512_setzero_si512();
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) total = _mm512_xor_si512(total, sums[chain]);
    sink = (float)_mm512_reduce_add_epi32(total) + (float)end;
}

static void bf16_words(long begin, long end) {
    __m512 sums[CHAINS];
    __m512bh by = (__m512bh)_mm512_set1_epi32(0x3f003f00 + (int)term);
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) sums[chain] = _mm512_set1_ps((float)(chain + begin));
    for (long step = 0; step < STEPS; step++) {
#pragma GCC unroll 32
        for (int chain = 0; chain < CHAINS; chain++) sums[chain] = _mm512_dpbf16_ps(sums[chain], by, by);
    }
    __m512 total = _mm512_setzero_ps();
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) total += sums[chain];
    sink = lanes((vector)total) + (float)end;
}
#endif

/* 2^x; without the instructions of AVX-512 only where the power is a normal number. */
static inline vector power(vector x) {
#if defined(__AVX512F__)
    vector whole = (vector)_mm512_roundscale_ps((__m512)x, 0), rest = x - whole;
#else
    vector rounded = x + (12582912.0f + 127.0f), rest = x - (rounded - (12582912.0f + 127.0f));
#endif
    vector sum = rest * 1.5345864e-4f + 1.339993e-3f;
    sum = sum * rest + 9.618489e-3f;
    sum = sum * rest + 5.550329e-2f;
    sum = sum * rest + 0.24022647f;
    sum = sum * rest + 0.6931472f;
    sum = sum * rest + 1.0f;
#if defined(__AVX512F__)
    return (vector)_mm512_scalef_ps((__m512)sum, (__m512)whole);
#else
    return sum * (vector)((integers)rounded << 23);
#endif
}

static void exponentials(long begin, long end) {
    static _Thread_local vector arguments[ARGUMENTS / LANES];
    static _Thread_local int filled;
    for (long index = 0; index < ARGUMENTS && !filled; index++) arguments[index / LANES][index % LANES] = index / -400.0f;
    filled = 1;
    vector sums[4] = {0};
    for (long walk = 0; walk < WALKS; walk++) {
        __asm__ volatile("" : : "r"(arguments) : "memory");
        for (long index = 0; index < ARGUMENTS / LANES; index += 4) {
#pragma GCC unroll 4
            for (int chain = 0; chain < 4; chain++) sums[chain] += power(arguments[index + chain]);
        }
    }
    sink = lanes(sums[0] + sums[1] + sums[2] + sums[3]) + (float)(begin + end);
}

/* The arrays' places in registers: a store could change variables, so that each step would read them again. */
static void copy_around(long begin, long end) {
    const float *from = source;
    float *to = target;
    for (long index = begin; index < end; index += LANES) {
        vector value = *(vector *)(from + index);
#if defined(__AVX512F__)
        _mm512_stream_ps(to + index, (__m512)value);
#elif defined(__AVX__)
        _mm256_stream_ps(to + index, (__m256)value);
#elif defined(__x86_64__)
        _mm_stream_ps(to + index, (__m128)value);
#else
        *(vector *)(to + index) = value;
#endif
    }
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

static void copy_through(long begin, long end) {
    const float *from = source;
    float *to = target;
    for (long index = begin; index < end; index += LANES) *(volatile vector *)(to + index) = *(vector *)(from + index);
}

static void sum_streams(long begin, long end, long streams) {
    vector sums[8] = {0};
    long part = (end - begin) / streams, step = 8 / streams * LANES;
    for (long index = begin; index + step <= begin + part; index += step) {
#pragma GCC unroll 8
        for (int chain = 0; chain < 8; chain++) {
            sums[chain] += *(vector *)(source + index + chain % streams * part + chain / streams * LANES);
        }
    }
    vector total = {0};
    for (int chain = 0; chain < 8; chain++) total += sums[chain];
    sink = lanes(total);
}

static void sum(long begin, long end) { sum_streams(begin, end, 1); }
static void sum_of_quarters(long begin, long end) { sum_streams(begin, end, 4); }

/* Rows of a table, far from each other. */
#define ROW 768L
#define TABLE_ROWS 50257L
static void rows(long begin, long end, int around) {
    const float *table = source;
    float *to = target;
    for (long row = begin; row < end; row++) {
        const float *from = table + (row % 251 * 200 + row % 200) * ROW;
        for (long index = 0; index < ROW; index += LANES) {
            vector value = *(vector *)(from + index);
#if defined(__AVX512F__)
            if (around) {
                _mm512_stream_ps(to + row * ROW + index, (__m512)value);
                continue;
            }
#endif
            *(volatile vector *)(to + row * ROW + index) = value;
        }
    }
#if defined(__x86_64__)
    _mm_sfence();
#endif
    (void)around;
}

static void rows_around(long begin, long end) { rows(begin, end, 1); }
static void rows_through(long begin, long end) { rows(begin, end, 0); }

typedef void (*work)(long begin, long end);

struct part {
    work run;
    long begin, end, times;
    pthread_barrier_t *barrier;
};

static void repeat(struct part *part) {
    for (long time = 0; time < part->times; time++) part->run(part->begin, part->end);
}

static void *other(void *argument) {
    struct part *part = argument;
    pthread_barrier_wait(part->barrier);
    repeat(part);
    pthread_barrier_wait(part->barrier);
    return 0;
}

/* The seconds of `run` so many times, shared among so many threads. */
static double timed(work run, long elements, int threads, long times) {
    pthread_t handles[THREADS];
    struct part parts[THREADS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, 0, threads);
    int of_rows = run == rows_around || run == rows_through;
    long grain = of_rows ? 1 : 128, size = elements / threads / grain * grain;
    for (int thread = 0; thread < threads; thread++) {
        parts[thread] = (struct part){run, thread * size, (thread + 1) * size, times, &barrier};
        if (thread) pthread_create(&handles[thread], 0, other, &parts[thread]);
    }
    pthread_barrier_wait(&barrier);
    double start = now();
    repeat(&parts[0]);
    pthread_barrier_wait(&barrier);
    double seconds = now() - start;
    for (int thread = 1; thread < threads; thread++) pthread_join(handles[thread], 0);
    pthread_barrier_destroy(&barrier);
    return seconds;
}

static float *pages(size_t bytes) {
    bytes = (bytes + (2 << 20) - 1) & -(size_t)(2 << 20);
    float *memory = aligned_alloc(2 << 20, bytes);
    if (!memory) exit(1);
#if defined(MADV_HUGEPAGE)
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    for (size_t index = 0; index < bytes / 4; index++) memory[index] = 1.0f;
    return memory;
}

/* What is measured, in one way or the faster of two, and how much of it one time does. */
struct limit {
    work one, two;
    double amount;
};

static struct limit named(const char *name, long elements, int threads) {
    double lanes = (double)CHAINS * LANES * STEPS * threads;
    if (!strcmp(name, "fma")) return (struct limit){multiply_add, 0, 2 * lanes};
#if defined(__AVX512VNNI__) && defined(__AVX512BF16__)
    if (!strcmp(name, "i8")) return (struct limit){byte_words, 0, 8 * lanes};
    if (!strcmp(name, "bf16")) return (struct limit){bf16_words, 0, 4 * lanes};
#endif
    if (!strcmp(name, "exp")) return (struct limit){exponentials, 0, (double)ARGUMENTS * WALKS * threads};
    if (!strcmp(name, "copy")) return (struct limit){copy_around, copy_through, 8.0 * elements};
    if (!strcmp(name, "read")) return (struct limit){sum, sum_of_quarters, 4.0 * elements};
    if (!strcmp(name, "rows")) return (struct limit){rows_around, rows_through, 8.0 * elements * ROW};
    exit(1);
}

/* Billions a second. */
static double rate(struct limit limit, long elements, int threads, long times) {
    double one = timed(limit.one, elements, threads, times);
    double two = limit.two ? timed(limit.two, elements, threads, times) : one;
    return limit.amount * times / (one < two ? one : two) / 1e9;
}

/* The median of samples that take long enough. */
static double median(const char *name, long elements, int threads) {
    struct limit limit = named(name, elements, threads);
    double samples[SAMPLES];
    long times = 1;
    while (timed(limit.one, elements, threads, times) < SAMPLE_TIME) times *= 2;
    for (int sample = 0; sample < SAMPLES; sample++) samples[sample] = rate(limit, elements, threads, times);
    qsort(samples, SAMPLES, sizeof *samples, ascending);
    return samples[SAMPLES / 2];
}

static int answer(void) {
    char name[16];
    long elements, times;
    int threads;
    while (scanf("%15s %ld %d %ld", name, &elements, &threads, &times) == 4) {
        if (elements < 0 || elements > LARGE || threads < 1 || threads > THREADS || times < 1) return 1;
        printf("%f\n", rate(named(name, elements, threads), elements, threads, times));
        fflush(stdout);
    }
    return 0;
}

int main(int count, char **arguments) {
    long sizes[] = {768L * 3072, 4096L * 768, 4096L * 1024, LARGE};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    source = pages(TABLE_ROWS * ROW * 4), target = pages(TABLE_ROWS * ROW * 4);
    if (count == 2 && !strcmp(arguments[1], "answer")) return answer();
    for (int threads = 1; threads <= processors && threads <= THREADS; threads += processors > 1 ? processors - 1 : 1) {
        printf("fma/%dt        %8.1f GFLOP/s\n", threads, median("fma", 0, threads));
#if defined(__AVX512VNNI__) && defined(__AVX512BF16__)
        printf("i8/%dt         %8.1f GFLOP/s\n", threads, median("i8", 0, threads));
        printf("bf16/%dt       %8.1f GFLOP/s\n", threads, median("bf16", 0, threads));
#endif
        printf("exp/%dt        %8.1f G/s\n", threads, median("exp", 0, threads));
        for (int size = 0; size < 4; size++) {
            printf("copy/%.0fMB/%dt  %8.1f GB/s\n", 4e-6 * sizes[size], threads, median("copy", sizes[size], threads));
            printf("read/%.0fMB/%dt  %8.1f GB/s\n", 4e-6 * sizes[size], threads, median("read", sizes[size], threads));
        }
        if (processors == 1) break;
    }
    return 0;
}
