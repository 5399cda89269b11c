#pragma once
// What changed between two runs, two hosts, a run and a host, or two environments, ranked by what
// is likely to matter. Pure: records, facts and packages in, changes out.
//
// Each change has a rule, which says what such a change is known to do, by whose word, and what to
// try. The case decides how much it weighs: a driver matters to a run that was given GPUs. What is
// not known of a side is neither the same nor different; it is named apart.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/environment.hpp"
#include "runner/facts/facts.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv::changes {

/// What comes of it, worst first.
enum class Weight {
  breaks,     ///< what ran may fail
  results,    ///< other numbers come out
  speed,      ///< it takes longer, or less long
  note,       ///< worth knowing
  incidental  ///< cannot matter: names, times, ids
};
/// `breaks`
std::string_view name_of(Weight weight);

struct Change {
  std::string rule;
  Weight weight = Weight::note;
  std::string what;                 ///< `NVIDIA driver`
  std::optional<std::string> from;  ///< nothing: not there, not set
  std::optional<std::string> to;
  std::string
      effect;  ///< one sentence: what such a change is known to do; empty for incidental ones
  std::string source;  ///< who says so
  std::string remedy;  ///< what to try
  /// Such a change is known to bring what tells the two runs' ends apart.
  bool explains = false;
  friend bool operator==(const Change&, const Change&) = default;
};

/// What could not be compared.
struct NotCompared {
  std::string what;                 ///< `host nvidia.kernel_driver`, `packages`
  std::optional<std::string> from;  ///< why it is not known of that side; nothing: it is
  std::optional<std::string> to;
  friend bool operator==(const NotCompared&, const NotCompared&) = default;
};

/// How the ends of two runs differ.
enum class Symptom { none, fails, out_of_memory, bus_error, illegal_instruction, slower };

struct Changes {
  /// Those that explain the symptom first, then by weight, then in the order of `rules()`.
  std::vector<Change> found;
  std::vector<NotCompared> open;
  Symptom symptom = Symptom::none;
  /// Packages of two runs' images; nothing where they are not known of both.
  std::optional<EnvironmentDiff> installed = {};
  /// `the second was killed for want of memory, or by hand (SIGKILL)`; empty without a symptom.
  std::string symptom_text;

  /// The first, where nothing else that was found is as likely, it is more than a note, and no
  /// whole part is unknown in which the cause may lie.
  const Change* likely() const;
  /// Whether anything was found that is not incidental.
  bool differ() const;
};

/// One of the two. Of a run all that its record holds, `facts` and `environment` included; else a
/// host alone.
struct Moment {
  std::optional<RunRecord> run;
  std::optional<Facts> host;        ///< of a run: where its record has them
  std::string no_environment = {};  ///< of a run without `environment`: why
};

/// Two runs are compared in all; where one of the two is a host alone, only the hosts are.
/// `code_files` are those that differ between the two commits, as far as somebody could tell.
Changes changes_between(const Moment& from, const Moment& to, const Texts& code_files = {});

/// What of the differences between two locks or images is likely to matter.
Changes changes_in(const EnvironmentDiff& installed, const ValueChanges& image_values);

/// A rule, as it is documented in docs/diff.md.
struct Rule {
  std::string_view id;
  Weight weight;          ///< unless the case says otherwise
  unsigned explains;      ///< symptoms, as bits: 1 << Symptom
  std::string_view what;  ///< changed
  std::string_view effect;
  std::string_view source;
  std::string_view remedy;
};
/// In order of likelihood, among those of one weight.
std::span<const Rule> rules();
/// Throws `bug` for an id that there is not.
const Rule& rule_of(std::string_view id);

}  // namespace mlenv::changes
