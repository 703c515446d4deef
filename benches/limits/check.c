/* The limits once more, by another compiler: multiply-adds, copy with streaming stores, sum; one thread.
 *
 *   cc -O3 -march=native check.c -o check && ./check
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Vectors of the compiler's own extension: none of the intrinsics that the Rust side measures with. */
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
#define ELEMENTS (16L << 20)
#define STEPS 20000000L
#define SAMPLES 21

typedef float vector __attribute__((vector_size(4 * LANES)));

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static int ascending(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double median(double *seconds) {
    qsort(seconds, SAMPLES, sizeof *seconds, ascending);
    return seconds[SAMPLES / 2];
}

static float lanes(vector total) {
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += total[lane];
    return sum;
}

static float multiply_add(float factor, float term) {
    vector sums[CHAINS];
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) sums[chain] = (vector){0} + (float)chain;
    for (long step = 0; step < STEPS; step++) {
#pragma GCC unroll 32
        for (int chain = 0; chain < CHAINS; chain++) sums[chain] = sums[chain] * factor + term;
    }
    vector total = {0};
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) total += sums[chain];
    return lanes(total);
}

static void copy(const vector *source, vector *target) {
    for (long index = 0; index < ELEMENTS / LANES; index++) {
#if defined(__AVX512F__)
        _mm512_stream_ps((float *)(target + index), (__m512)source[index]);
#elif defined(__AVX__)
        _mm256_stream_ps((float *)(target + index), (__m256)source[index]);
#elif defined(__x86_64__)
        _mm_stream_ps((float *)(target + index), (__m128)source[index]);
#else
        target[index] = source[index];
#endif
    }
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

static float sum(const vector *source) {
    vector sums[8] = {0};
    for (long index = 0; index < ELEMENTS / LANES; index += 8) {
#pragma GCC unroll 8
        for (int chain = 0; chain < 8; chain++) sums[chain] += source[index + chain];
    }
    vector total = {0};
#pragma GCC unroll 8
    for (int chain = 0; chain < 8; chain++) total += sums[chain];
    return lanes(total);
}

int main(void) {
    volatile float factor = 0.999f, term = 0.001f, sink;
    double seconds[SAMPLES];
    size_t bytes = ELEMENTS * sizeof(float);
    float *source = aligned_alloc(64, bytes), *target = aligned_alloc(64, bytes);
    if (!source || !target) return 1;
    for (long index = 0; index < ELEMENTS; index++) source[index] = 1.0f;
    memset(target, 1, bytes);

    for (int sample = 0; sample < SAMPLES; sample++) {
        double start = now();
        sink = multiply_add(factor, term);
        seconds[sample] = now() - start;
    }
    printf("fma   %8.1f GFLOP/s\n", 2.0 * CHAINS * LANES * STEPS / median(seconds) / 1e9);
    for (int sample = 0; sample < SAMPLES; sample++) {
        double start = now();
        for (int pass = 0; pass < 4; pass++) copy((vector *)source, (vector *)target);
        seconds[sample] = (now() - start) / 4;
    }
    printf("copy  %8.1f GB/s\n", 2.0 * bytes / median(seconds) / 1e9);
    for (int sample = 0; sample < SAMPLES; sample++) {
        double start = now();
        for (int pass = 0; pass < 4; pass++) sink = sum((vector *)source);
        seconds[sample] = (now() - start) / 4;
    }
    printf("read  %8.1f GB/s\n", bytes / median(seconds) / 1e9);
    (void)sink;
    free(source);
    free(target);
    return 0;
}
