#pragma once
// What must hold for any bytes that come over a node's link.
#include <stdexcept>

#include "base/bytes.hpp"
#include "runner/job/messages.hpp"

namespace mlenv::fuzz {

/// Throws std::logic_error when it is another one once it was written and read again.
inline void require_same(const job::Message& message) {
  job::MessageReader again{false};
  const std::string written = job::render_message(message);
  again.take(written);
  const std::optional<job::Message> same = again.next();
  if (!same || same->index() != message.index() || job::render_message(*same) != written) {
    throw std::logic_error("a message changes when it is written and read");
  }
}

/// True when there was a message in them. The first byte says where they are cut, and whether the
/// agent's first line comes before. Throws what require_same() throws.
inline bool one_messages(ByteView input) {
  if (input.empty()) return false;
  const auto how = std::to_integer<unsigned>(input.front());
  const std::string_view bytes = as_text(input.subspan(1));
  job::MessageReader reader{(how & 1U) != 0};
  const std::size_t piece = 1 + how / 2;
  std::size_t count = 0;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.take(bytes.substr(at, piece));
      while (const std::optional<job::Message> message = reader.next()) {
        ++count;
        require_same(*message);
      }
    }
  } catch (const Error&) {
    return false;
  }
  (void)reader.noise();
  return count > 0;
}

}  // namespace mlenv::fuzz
