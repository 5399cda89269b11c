#pragma once
// Records that nodes and their controller pass on a line each (link_test.hpp, storage_test.hpp).
// For .cpp files alone.
#include "base/record_json.hpp"
#include "runner/job/misunderstood.hpp"

namespace mlenv::job {

/// Throws `bad-stream` for what is none.
template <Record T>
T read_line_record(std::string_view text, const RecordKind& kind) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  if (text.size() > kMost) throw misunderstood("it is too large");
  try {
    return read_record<T>(text, kind.noun, kind);
  } catch (const Error& error) {
    throw misunderstood(error.frames().back());
  }
}

}  // namespace mlenv::job
