#pragma once
// What goes over the one serial port between mlenv and its guest: frames, of which each belongs to
// a channel (a process in the guest) and may belong to one of its streams. Both ends are of one
// build, so numbers are as this machine has them.
#include <cstdint>

namespace mlenv::vm {

/// The port's name in the guest.
inline constexpr const char* kPortName = "mlenv";
/// The tag of the shared folder.
inline constexpr const char* kShareTag = "mlenv";

enum class Kind : std::uint8_t {
  setup,   ///< of the host, first: what the guest is to make (guest/setup.hpp)
  failed,  ///< of the guest: a text, why it could not
  word,    ///< a frame of the keeper's protocol; `stream`: so many open files came with it
  open,    ///< of the host: one more channel
  close,   ///< the channel's other end is closed
  data,    ///< of a stream
  end,     ///< of a stream: no more data
  gone,    ///< of a stream: nobody reads it any more
  more,    ///< of a stream: so many bytes (a 32-bit number) may follow
  size,    ///< of a terminal: rows and columns (two 16-bit numbers)
  memory,  ///< of the guest: its kernel killed processes for want of memory, so many so far
  bye,     ///< of the guest, last: everything that was written is where it belongs
};

struct FrameHead {
  std::uint32_t bytes = 0;
  std::uint32_t generation = 0;  ///< of the channel's streams: those of an earlier start are old
  std::uint16_t channel = 0;
  Kind kind = Kind::data;
  std::uint8_t stream = 0;
};
inline constexpr std::uint32_t kMostFrame = (std::uint32_t{16} << 20U) + 4096;

/// So much of a stream may be under way: a stream that nobody reads holds no other up.
inline constexpr std::uint32_t kWindow = std::uint32_t{256} << 10U;

}  // namespace mlenv::vm
