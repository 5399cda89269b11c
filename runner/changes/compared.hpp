#pragma once
// Two moments, while rules look at them.
#include <map>
#include <set>

#include "runner/changes/changes.hpp"

namespace mlenv::changes {

/// What a change says; what is not said is the rule's.
struct Said {
  std::optional<std::string> from;
  std::optional<std::string> to;
  std::optional<Weight> weight = {};
  std::string what = {};
  std::string effect = {};
  std::string remedy = {};
};

class Compared {
 public:
  Compared(const Moment& from, const Moment& to, const Texts& code_files);
  Compared(const Compared&) = delete;
  Compared& operator=(const Compared&) = delete;
  ~Compared() = default;
  explicit Compared(const EnvironmentDiff& installed) : installed_(&installed) {}

  void find(std::string_view rule, Said said);
  void leave_open(std::string what, std::optional<std::string> from, std::optional<std::string> to);
  /// Whether both are known; what is not is recorded.
  template <class T>
  bool know(std::string_view what, const Fact<T>& from, const Fact<T>& to) {
    if (from && to) return true;
    leave_open(std::string(what), from ? std::nullopt : std::optional(from.source),
               to ? std::nullopt : std::optional(to.source));
    return false;
  }

  /// Null unless both are runs.
  const RunRecord* from_run() const { return from_run_; }
  const RunRecord* to_run() const { return to_run_; }
  /// Null unless both hosts are known.
  const Facts* from_host() const { return from_host_; }
  const Facts* to_host() const { return to_host_; }
  /// What is installed; null where it is not known of both.
  const EnvironmentDiff* installed() const { return installed_; }
  /// Whether GPUs are of use: runs that were given some; of hosts alone, those that have some.
  bool on_gpus() const { return on_gpus_; }
  Symptom symptom() const { return out_.symptom; }
  /// Whether anything was found so far that is not incidental.
  bool differ() const { return out_.differ(); }
  /// That differ between the two commits; null where nobody could tell.
  const std::vector<std::string>* code_files() const;

  /// Sorted.
  Changes take() &&;

 private:
  void read_ends();
  void compare_installed(const Moment& from, const Moment& to);

  const RunRecord* from_run_ = nullptr;
  const RunRecord* to_run_ = nullptr;
  const Facts* from_host_ = nullptr;
  const Facts* to_host_ = nullptr;
  std::optional<EnvironmentDiff> own_;
  const EnvironmentDiff* installed_ = nullptr;
  const Texts* code_files_ = nullptr;
  bool on_gpus_ = true;
  Changes out_;
};

inline std::string value_text(const std::string& text) { return text; }
inline std::string value_text(bool value) { return value ? "yes" : "no"; }
inline std::string value_text(std::uint64_t number) { return std::to_string(number); }

/// Both values, and nothing where they are equal.
template <class T>
void find_other(Compared& here, std::string_view rule, std::string_view what, const Fact<T>& from,
                const Fact<T>& to) {
  if (!here.know(what, from, to) || *from == *to) return;
  here.find(rule, {value_text(*from), value_text(*to)});
}

/// `64 MB`
std::string bytes_text(std::uint64_t bytes);
/// `64 MB`, `no limit`
std::string limit_text(const Limit& limit);
/// Whether the second allows less.
bool is_lower(const Limit& from, const Limit& to);
/// `a 1 → 2, b 3 → 4, and 2 more`: as the two sides of one change.
struct Listing {
  std::vector<std::string> from;
  std::vector<std::string> to;
  bool empty() const { return from.empty() && to.empty(); }
  /// The two lists, each on a line, brief where they are long.
  Said said() const;
};

}  // namespace mlenv::changes
