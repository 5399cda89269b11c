#pragma once
// The two ends of the serial port between mlenv and its guest, which are one class: what is said to
// the keeper of a container (runner/engine/keeper/protocol.hpp) goes over the port, and so does
// what it answers; open files, which cannot, become streams. So the stage talks to the keeper in a
// guest as it does to one in a container.
//
//     stage ── socket ── Link (host) ══ port ══ Link (guest) ── socket ── keeper ── job
//
// Compiled into mlenv and into the guest's program alike: the C++ library, but no exceptions.
#include <poll.h>
#include <sys/types.h>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/engine/keeper/protocol.hpp"
#include "runner/vm/frames.hpp"

namespace mlenv::vm {

enum class Side { host, guest };

struct LinkEnds {
  int port = -1;    ///< made non-blocking
  int socket = -1;  ///< of the keeper's protocol, the job's channel
  int notes = -1;   ///< host: a file that gets a line for what the guest tells of itself
};

/// What the guest does on the way.
struct LinkHooks {
  std::function<void()> before_start{};         ///< of the job, the first time
  std::function<std::string()> memory_kills{};  ///< so far, in digits
};

/// Lines of `LinkEnds::notes` begin with these.
inline constexpr const char* kNoteFailed = "failed ";
inline constexpr const char* kNoteMemory = "memory ";
/// And the errno with which the job's output, or its errors, found no room.
inline constexpr const char* kNoteOutput = "output ";

class Link {
 public:
  Link(Side side, LinkEnds ends, LinkHooks hooks = {});
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  /// Frames without a channel of their own.
  void send(Kind kind, std::string_view bytes);
  /// Waits for the next frame and returns its bytes; nullopt when it is another kind, or the port
  /// is gone. Before `run`.
  std::optional<std::string> expect(Kind kind);

  /// Until the job's channel is closed: on the host until the guest has said good-bye to that, too,
  /// or has had its time. False when the port is gone.
  bool run();

  /// Writes what is still to be written.
  void flush();

 private:
  struct Stream {
    int fd = -1;
    bool is_source = false;    ///< read here and sent; else written here
    std::uint32_t credit = 0;  ///< a source may send so much
    std::string buffer;        ///< to be written
    bool ending = false;       ///< when that is written
    std::uint64_t owed = 0;    ///< a source: to be sent before the end is told
  };
  struct Channel {
    int socket = -1;
    std::uint32_t generation = 0;
    std::array<Stream, keeper::kMostFiles> streams;
    std::string held;       ///< that the process ended, until its streams are through
    bool in_hurry = false;  ///< it was killed: nothing waits for its streams
    pid_t sizes = -1;       ///< who watches the terminal's size
    int sizes_fd = -1;
  };
  struct Word;
  using Clock_ms = std::int64_t;

  void send_frame(const FrameHead& head, std::string_view bytes);
  void send_of(std::uint16_t number, const Channel& channel, Kind kind, std::string_view bytes = {},
               std::size_t stream = 0);
  bool read_port();
  bool write_port();
  std::optional<std::string> take_frame(FrameHead& head);
  void hear_frame(const FrameHead& head, const std::string& bytes);
  void hear_stream(const FrameHead& head, const std::string& bytes, Channel& channel);
  void hear_socket(std::uint16_t number);
  void pass_on(std::uint16_t number, Channel& channel, Word& word);
  void deliver(std::uint16_t number, Channel& channel, const FrameHead& head,
               const std::string& bytes);
  void deliver_start(Channel& channel, const std::string& bytes, std::size_t files);
  void deliver_started(Channel& channel, const std::string& bytes);
  static void tell(int socket, std::string_view bytes, const std::vector<int>& files);
  static void attach(Stream& stream, int fd, bool is_source);
  void restart_streams(Channel& channel);
  void close_streams(Channel& channel);
  static void close_stream(Stream& stream);
  void end_stream(Channel& channel, std::size_t index);
  void close_channel(std::uint16_t number);
  void read_stream(std::uint16_t number, Channel& channel, std::size_t index);
  void write_stream(std::uint16_t number, Channel& channel, std::size_t index);
  void release_held(std::uint16_t number, Channel& channel);
  void tell_size(std::uint16_t number, Channel& channel);
  void watch_size(Channel& channel, int terminal);
  void note(std::string_view kind, std::string_view text);
  bool is_over() const;
  std::vector<pollfd> polled() const;
  int wait_ms() const;
  bool turn();

  Side side_;
  LinkEnds ends_;
  LinkHooks hooks_;
  std::map<std::uint16_t, Channel> channels_;
  std::uint16_t next_ = 1;
  std::string in_;
  std::string out_;
  bool finished_ = false;  ///< the job's channel is closed
  bool said_bye_ = false;
  std::string last_note_;
  std::size_t noted_bytes_ = 0;
  bool is_broken_ = false;  ///< the other side does not keep to the rules
  std::optional<Clock_ms> give_up_at_;
};

}  // namespace mlenv::vm
