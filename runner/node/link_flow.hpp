#pragma once
// What one connection carries: round trips, a stream of bytes, an all-reduce around a ring. Nothing
// here waits beyond `until`.
#include <cstdint>
#include <optional>
#include <vector>

#include "runner/node/link_sockets.hpp"

namespace mlenv::job {

/// The least time of up to 40 round trips of one byte each, within 200 ms; the other side answers
/// them. nullopt: not one came back.
std::optional<double> round_trip(int fd, LinkClock::time_point until);
/// Until the other side has had enough of them; false: the connection ended, or the time did.
bool answer_round_trips(int fd, LinkClock::time_point until);

/// As much as the link takes, for an eighth longer than `span`.
void send_stream(int fd, std::chrono::milliseconds span, LinkClock::time_point until);
/// Bits per second of what comes within `span` of its first byte. The first quarter of that is left
/// out: TCP finds the link's speed then, and what was buffered on the way (a token bucket's burst)
/// comes faster than the link is. nullopt: nothing came.
std::optional<double> receive_stream(int fd, std::chrono::milliseconds span,
                                     LinkClock::time_point until);

/// The ring all-reduce of the field: each of N parts of the vector is summed on its way around,
/// then the sums go around: 2(N-1) steps, in each of which a node sends a part on and gets another.
struct RingPlace {
  std::size_t self = 0;
  std::size_t nodes = 2;
  int next = -1;
  int before = -1;
};
struct RingResult {
  std::vector<double>
      seconds;  ///< of each time; fewer than were asked for: it broke, or took too long
  bool sums_right = true;
};
/// The first of them, which finds the links' speeds, is not counted.
RingResult ring_allreduce(const RingPlace& place, std::size_t bytes, std::size_t times,
                          LinkClock::time_point until);

}  // namespace mlenv::job
