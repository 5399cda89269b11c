#pragma once
// SHA-256 as a state that can be advanced together with another one. A single computation waits for
// the result of each round before the next, so that on processors with SHA instructions two whose
// rounds take turns need as long as one.
#include <memory>

#include "base/digest.hpp"

namespace mlenv {

class Sha256State {
 public:
  Sha256State();
  Sha256State(const Sha256State&) = delete;
  Sha256State& operator=(const Sha256State&) = delete;
  ~Sha256State();

  void write(ByteView data);
  /// Continues both; either may be empty. What has the same length is hashed in step.
  static void write_both(Sha256State& a, ByteView first, Sha256State& b, ByteView second);
  /// Whether that is faster here: the processor has SHA instructions.
  static bool goes_in_step();
  /// Ends it; then only `start_again` may follow.
  Digest finish();
  void start_again();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace mlenv
