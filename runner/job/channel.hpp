#pragma once
// One end of a node's link: messages over a pair of streams, without waiting, and when each side
// was last heard.
#include <chrono>
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
  std::size_t queued() const { return out_.size() - sent_; }
  /// For what there is much of: whoever has such asks first, and comes back when some was sent.
  bool has_room() const;
  /// Writes what the other side takes; false: it is gone.
  bool send();
  /// Reads what is there, up to a bound; false: the stream is over.
  bool take();
  /// As MessageReader::next.
  std::optional<Message> next() { return reader_.next(); }
  const MessageReader& reader() const { return reader_; }

  Clock::time_point last_said() const { return last_said_; }
  Clock::time_point last_heard() const { return last_heard_; }
  void close() { stream_ = {}; }
  void close_reading() { stream_.from.reset(); }

 private:
  NodeStream stream_;
  MessageReader reader_;
  std::string out_;
  std::size_t sent_ = 0;
  Clock::time_point last_said_ = Clock::now();
  Clock::time_point last_heard_ = Clock::now();
};

}  // namespace mlenv::job
