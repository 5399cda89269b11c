#pragma once
// The nodes of a job beside each other, as it was found (agreement.hpp): a value, as a table for
// people, as JSON, and as the record of the job keeps it.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::job {

enum class Standing {
  same,
  unknown,  ///< nothing differs, and not all nodes tell
  noted,    ///< the job runs, and may be slower or give other numbers
  blocked,  ///< it fails, hangs, or is refused by one of them
};
std::string_view name_of(Standing standing);

struct AgreementRow {
  std::string rule;  ///< stable: `driver`
  std::string what;  ///< `NVIDIA driver`
  std::string standing = "same";
  std::vector<std::optional<std::string>> values;  ///< of each node; nothing: not known
  std::string effect;  ///< one sentence, where it is noted or blocked, as the next two
  std::string source;
  std::string remedy;
  friend bool operator==(const AgreementRow&, const AgreementRow&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rule", self.rule);
    visit("what", self.what);
    visit("standing", self.standing);
    visit("values", self.values);
    visit("effect", self.effect);
    visit("source", self.source);
    visit("remedy", self.remedy);
  }
};

struct Agreement {
  std::vector<std::string> nodes;
  std::vector<AgreementRow> rows;  ///< what is blocked first, then noted, unknown, the same

  /// The first row that blocks; null: none does.
  const AgreementRow* blocking() const;
  /// Rows that are blocked or noted.
  std::size_t differences() const;
  friend bool operator==(const Agreement&, const Agreement&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("nodes", self.nodes);
    visit("rows", self.rows);
  }
};

/// A line for each row that is blocked or noted, below one of what they are: `blocks  OCI runtime
/// runc on n1, n3; none on n2  (where there is none no container starts)`. Empty: nothing differs.
std::vector<std::string> difference_table(const Agreement& agreement);

/// mlenv.agreement/1 on one line, without the newline.
std::string render_agreement(const Agreement& agreement);
/// The other way. Throws `bad-facts` or `facts-version` (usage); `shown` names the text.
Agreement parse_agreement(std::string_view text, std::string_view shown);

/// `535.247.01 on n1; 580.95.05 on n2, n3`
std::string who_has_what(const Agreement& agreement, const AgreementRow& row);

}  // namespace mlenv::job
