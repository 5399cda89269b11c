#pragma once
// SHA-256 as a state that can be advanced together with others. A single computation waits for
// the result of each round before the next, so that on processors with SHA instructions two or
// three whose rounds take turns need little longer than one.
#include <memory>
#include <span>

#include "base/digest.hpp"

namespace mlenv {

class Sha256State {
 public:
  Sha256State();
  Sha256State(const Sha256State&) = delete;
  Sha256State& operator=(const Sha256State&) = delete;
  ~Sha256State();

  void write(ByteView data);
  /// The bytes that continue a state.
  struct Part {
    Sha256State* state = nullptr;
    ByteView bytes;
  };
  static constexpr std::size_t kTogether = 3;
  /// Continues up to `kTogether` different states, each with its bytes, in step as far as these go.
  static void write_together(std::span<const Part> parts);
  /// Whether that is faster here: the processor has SHA instructions.
  static bool goes_in_step();
  /// Ends it; then only `start_again` may follow.
  Digest finish();
  void start_again();

 private:
  static bool write_blocks(std::span<Part> parts);
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace mlenv
