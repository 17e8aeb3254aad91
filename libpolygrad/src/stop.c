#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <time.h>

#include "model.h"

#ifdef __APPLE__
#define CLOCK CLOCK_REALTIME /* its conditions know no other */
#else
#define CLOCK CLOCK_MONOTONIC
#endif

pg_status stop_open(struct stop *stop, pg_error *error) {
  pthread_condattr_t attributes;
  bool good = !pthread_condattr_init(&attributes);
#ifndef __APPLE__
  good = good && !pthread_condattr_setclock(&attributes, CLOCK);
#endif
  good = good && !pthread_mutex_init(&stop->mutex, NULL) && !pthread_cond_init(&stop->ended, &attributes);
  pthread_condattr_destroy(&attributes);
  return good ? PG_OK : out_of_memory(error);
}

void stop_close(struct stop *stop) {
  pthread_cond_destroy(&stop->ended);
  pthread_mutex_destroy(&stop->mutex);
}

/* A run that sees no request any more has ended before `running` is read here, or waits for this to end. */
void stop_request(pg_model *model, pg_status reason) {
  struct stop *stop = &model->stop;
  int none = PG_OK;
  atomic_fetch_add(&stop->requests, 1);
  if (atomic_load(&stop->running)) {
    atomic_compare_exchange_strong(&stop->reason, &none, reason);
    model->engine->stop(model);
  }
  atomic_fetch_sub(&stop->requests, 1);
}

static void *wait_for_the_end(void *argument) {
  pg_model *model = argument;
  struct stop *stop = &model->stop;
  struct timespec until;
  double whole = floor(stop->timeout);
  clock_gettime(CLOCK, &until);
  until.tv_sec += (time_t)whole;
  until.tv_nsec += (long)((stop->timeout - whole) * 1e9);
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&stop->mutex);
  int result = 0;
  while (!stop->has_ended && result != ETIMEDOUT)
    result = pthread_cond_timedwait(&stop->ended, &stop->mutex, &until);
  bool late = !stop->has_ended;
  pthread_mutex_unlock(&stop->mutex);
  if (late)
    stop_request(model, PG_TIMEOUT);
  return NULL;
}

pg_status stop_begin(pg_model *model, double timeout, pthread_t *timer, pg_error *error) {
  struct stop *stop = &model->stop;
  stop->has_ended = false;
  stop->timeout = timeout;
  atomic_store(&stop->reason, PG_OK);
  __atomic_store_n(&stop->word, 0, __ATOMIC_RELAXED);
  atomic_store(&stop->running, 1);
  if (timeout > 0 && pthread_create(timer, NULL, wait_for_the_end, model)) {
    atomic_store(&stop->running, 0);
    return fail(error, PG_MEMORY, "run: expected a thread for the timeout, got none");
  }
  return PG_OK;
}

pg_status stop_end(pg_model *model, double timeout, pthread_t timer) {
  struct stop *stop = &model->stop;
  if (timeout > 0) {
    pthread_mutex_lock(&stop->mutex);
    stop->has_ended = true;
    pthread_cond_signal(&stop->ended);
    pthread_mutex_unlock(&stop->mutex);
    pthread_join(timer, NULL);
  }
  atomic_store(&stop->running, 0);
  while (atomic_load(&stop->requests))
    sched_yield();
  return atomic_load(&stop->reason);
}
