#pragma once
// Whether an image runs on a host, and how well: every rule that the two break, with what is
// needed, what was found, and what to do. Pure: facts in, verdict out.
//
// A fact that is unknown never gives a finding; the rule is then named among those that could not
// be judged, with the reason. Rules that are about nothing here (drivers for an image without
// CUDA) are silent.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {

/// Worst first.
enum class Severity {
  blocks,  ///< it does not run
  risks,   ///< it may fail, by what it does or where it is started
  slows,   ///< it runs, slower than it could
  note     ///< worth knowing
};
/// `blocks`
std::string_view name_of(Severity severity);

struct Finding {
  std::string rule;  ///< stable; its page is docs/rules/RULE.md
  Severity severity = Severity::note;
  std::string needed;
  std::string found;
  std::string source;  ///< where both come from: files of the image, facts of the host
  std::string remedy;
  std::string title = {};  ///< what is wrong, where it is not what the rule's title says
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// A rule that would have needed a fact.
struct Unjudged {
  std::string rule;
  std::string fact;  ///< `host nvidia.kernel_driver`, `image device_code`
  std::string why;   ///< the fact's own reason
  std::string how;   ///< to get it known
  friend bool operator==(const Unjudged&, const Unjudged&) = default;
};

struct Verdict {
  std::vector<Finding> findings;   ///< worst first, then in the order of `rules()`
  std::vector<Unjudged> unjudged;  ///< in that order

  bool blocks() const;
  /// Whether a rule could not be judged without which nobody can say that it runs.
  bool is_open() const;
  /// Whether a rule could not be judged that may find something of that severity or a worse one.
  bool leaves_open(Severity at_least) const;
  /// `runs`, `slows`, `risks`, `unknown` (nothing blocks, and it is open) or `blocks`.
  std::string_view word() const;
  /// Of the worst finding; nullopt: there is none.
  std::optional<Severity> worst() const;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// How it is to be run. What is not said is as the image and the host have it.
struct Use {
  std::optional<unsigned> gpus;  ///< on this host; 0: GPUs do not matter
  unsigned nodes = 1;
  /// `1000`, `1000:100`, a name; empty: the image's, in a container that of the host's facts.
  std::string user;
  std::optional<std::uint64_t> shm_bytes;  ///< of /dev/shm
  /// What the host's store has not got of the image yet; nothing: perhaps all of it.
  std::optional<std::uint64_t> bytes_to_store;
};

Verdict judge(const ImageFacts& image, const Facts& host, const Use& use = {});

/// The folder in the image whose libcuda, made for older drivers, has to come before the host's:
/// where the image runs by that alone, as rule `forward-compatibility` has it, and its own
/// LD_LIBRARY_PATH does not see to it. Else empty: with another GPU or driver that library would
/// make CUDA fail.
std::string forward_libraries(const ImageFacts& image, const Facts& host, const Use& use = {});

/// An image on a host, of ranks that are to work together.
struct Rank {
  const ImageFacts* image = nullptr;
  const Facts* host = nullptr;
  std::string_view host_name;
};
/// What only shows between ranks: `nccl-differs`, `drivers-differ`. On one host nothing does.
Verdict judge_together(std::span<const Rank> ranks, const Use& use);

/// A rule, as it is documented.
struct Rule {
  std::string_view id;
  Severity severity;        ///< unless the case says otherwise
  std::string_view title;   ///< what is wrong: `the NVIDIA driver is too old for the image`
  std::string_view source;  ///< who says so
  bool decides = false;     ///< where it cannot be judged nobody can say that it runs
};
std::span<const Rule> rules();
/// nullptr for an unknown id.
const Rule* find_rule(std::string_view id);

}  // namespace mlenv
