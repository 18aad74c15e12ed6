/* SPDX-License-Identifier: MIT
 * sampler.h - is this allocation a sample, and what does it stand for?
 *
 * Poisson sampling over bytes: the gaps between samples are exponential with mean R (the sample rate), drawn per thread, the
 * first one too. An allocation of s bytes (0 counts as 1) is a sample with probability 1 - e^(-s/R), independently of all
 * others, and then stands for 1/(1 - e^(-s/R)) allocations: that makes every sum over samples an unbiased estimate
 * (Horvitz-Thompson; docs/accuracy.md). The gap is kept as its whole part: a real gap G ends inside the next n bytes exactly
 * when floor(G) < n.
 * A change of rate moves hp_hot.rate_epoch; each thread draws a new gap at its next allocation (exponential gaps have no
 * memory: drawing anew is no bias) and takes no sample because of it. Until the first rate is set no gap is drawn at all.
 * Threads     all per-thread; the rate is atomic. */
#ifndef HP_SAMPLER_H
#define HP_SAMPLER_H

#include "hot.h"
#include "thread_state.h"

#define HP_SAMPLE_RATE_DEFAULT ((uint64_t)512 << 10)
#define HP_SAMPLE_RATE_MAX ((uint64_t)1 << 40)

/* Was the gap drawn for the rate there is now? */
static inline bool hp_sampler_is_current(void) { return hp_thread.rate_epoch == hp_load_relaxed(&hp_hot.rate_epoch); }

/* Do `size` bytes fit into what is left of this thread's gap, whatever rate it is of? If so they are taken from it. Size 0,
 * which counts as 1, wraps round and never fits: hp_sampler_decide_slow() takes it from the gap. */
static inline bool hp_sampler_fits(size_t size) {
  if (HP_UNLIKELY(size - 1 >= hp_thread.bytes_left)) return false;
  hp_signal_fence(); /* compared and subtracted where it lies: kept in a register it takes two instructions more */
  hp_thread.bytes_left -= size;
  return true;
}

/* The hot test: no sample. (Of a gap that is not current it does not matter what was taken.) */
static inline bool hp_sampler_passes(size_t size) { return hp_sampler_fits(size) && HP_LIKELY(hp_sampler_is_current()); }

/* What the hot test left: draws the gap if it must, and decides. Returns the weight of the sample, quantised at random to a
 * multiple of 1/1024 (so that sums are exact and still unbiased), or 0: no sample. Own thread, any time. */
float hp_sampler_decide_slow(size_t size);

/* Mean bytes between samples; 0: never. At most HP_SAMPLE_RATE_MAX. The first call is for start-up; for a later one a program
 * under way needs hp_sampled_change_rate() (sampled_path.h) as well, or a thread may use up its gap. Any thread. */
void hp_sampler_set_rate(uint64_t bytes);
uint64_t hp_sampler_rate(void);
/* The last that was not 0, which is what samples stand for after a stop; 0: it was never on. */
uint64_t hp_sampler_rate_last(void);
/* Was it ever other than 0? */
bool hp_sampler_was_on(void);
/* The highest rate so far; UINT64_MAX: there were times without any. */
uint64_t hp_sampler_rate_max(void);

/* Pure pieces, for tests: the whole part of an exponential gap of this mean (1: always 0; 0: never ends), and the exact
 * weight of a block. */
uint64_t hp_sampler_draw_gap(struct hp_rng *rng, uint64_t rate_bytes);
double hp_sampler_weight(uint64_t size, uint64_t rate_bytes);
float hp_sampler_quantise(double weight, struct hp_rng *rng);

/* The thread's next allocation comes to hp_sampler_decide_slow() and draws a new gap. Own thread. */
static inline void hp_sampler_forget_gap(void) {
  hp_thread.rate_epoch = 0;
  hp_thread.bytes_left = 0;
}

/* A handler that allocates just between the two instructions of hp_sampler_fits() may leave a gap that has wrapped round, and the thread
 * would never be sampled again: such a one is drawn anew. Now and then; own thread. */
static inline void hp_sampler_mend_gap(void) {
  if (HP_UNLIKELY(hp_thread.bytes_left > UINT64_MAX / 2) && hp_sampler_rate() != 0) hp_sampler_forget_gap();
}

/* The thread's generator starts anew, and so does its gap: a forked child must not repeat its parent's. Own thread. */
void hp_sampler_reseed(void);
/* Tests: every generator starts from this seed and a counter instead of clock and addresses. */
void hp_sampler_test_seed(uint64_t seed);

#endif
