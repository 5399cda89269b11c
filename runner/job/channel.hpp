#pragma once
// One end of a node's link: messages over a pair of streams, without waiting, and when each side
// was last heard. One thread has it; beat() alone is for another one (beater.hpp).
#include <chrono>
#include <mutex>
#include <string>

#include "runner/job/messages.hpp"

namespace mlenv::job {

class Channel {
 public:
  using Clock = std::chrono::steady_clock;

  /// Sets both streams to O_NONBLOCK.
  Channel(NodeStream stream, bool after_marker);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() = default;

  /// -1 once it is closed.
  int read_fd() const { return stream_.from ? stream_.from.get() : -1; }
  int write_fd() const { return stream_.to ? stream_.to.get() : -1; }
  /// What begins the stream (the agent's marker): not before anything else.
  void say_raw(std::string_view bytes);
  /// Queues it. Throws as render_message does.
  void say(const Message& message);
  std::size_t queued() const;
  /// For what there is much of: whoever has such asks first, and comes back when some was sent.
  bool has_room() const;
  /// Writes what the other side takes; false: it is gone.
  bool send();
  /// Says that this side is there, where it has said nothing for so long and the other one reads.
  /// For whoever does so while the owner is held up; not once it is closed.
  void beat(std::chrono::milliseconds after);
  /// Reads what is there, up to a bound; false: the stream is over.
  bool take();
  /// As MessageReader::next.
  std::optional<Message> next() { return reader_.next(); }
  const MessageReader& reader() const { return reader_; }

  Clock::time_point last_said() const;
  Clock::time_point last_heard() const { return last_heard_; }
  void close();
  void close_reading() { stream_.from.reset(); }

 private:
  bool send_queued();

  mutable std::mutex mutex_;  ///< of what is on its way out, and when something was last said
  NodeStream stream_;
  MessageReader reader_;
  std::string out_;  ///< whole messages, of which the first may have left in part
  std::size_t sent_ = 0;
  Clock::time_point last_said_ = Clock::now();
  Clock::time_point last_heard_ = Clock::now();
};

}  // namespace mlenv::job
