// A point of time after which a thread computes no mask.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>

namespace constrain {

// A mask was not computed, because its time was over. Tables keep what was found by then, and no part of the mask.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "the time to compute a mask is over"; }
};

// Any thread may set the time.
class StopTime {
 public:
  void set(double seconds_from_now) {
    constexpr double most = 1e9;
    const auto rest = std::chrono::duration<double>(seconds_from_now < most ? seconds_from_now : most);
    at_ = (Clock::now() + std::chrono::duration_cast<Clock::duration>(rest)).time_since_epoch().count();
  }
  void check() const {
    const auto at = at_.load(std::memory_order_relaxed);
    if (at != never && Clock::now().time_since_epoch().count() > at) throw Stopped();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::rep never = std::numeric_limits<Clock::rep>::max();
  std::atomic<Clock::rep> at_ = never;
};

// Work of this thread on expressions throws Stopped after this time; null for none.
inline thread_local constinit const StopTime* stop_time = nullptr;

}  // namespace constrain
