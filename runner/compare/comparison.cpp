#include "runner/compare/comparison.hpp"

#include <algorithm>

#include "base/digest.hpp"
#include "base/record_json.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::compare {
namespace {

constexpr RecordKind kComparison{"mlenv.compare/1", "a comparison",
                                 "`mlenv compare IMAGE --json-file FILE` writes such a file"};

std::vector<double> session_values(const Cell& cell, std::uint64_t session) {
  std::vector<double> values;
  for (const Sample& one : cell.samples) {
    if (one.session == session) values.push_back(one.value);
  }
  return values;
}

/// Newest session before `session` in which the cell was measured.
std::optional<std::uint64_t> session_before(const Cell& cell, std::uint64_t session) {
  std::optional<std::uint64_t> before;
  for (const Sample& one : cell.samples) {
    if (one.session < session && (!before || one.session > *before)) before = one.session;
  }
  return before;
}

void conclude_cell(Cell& cell, Better better) {
  cell.summary.reset();
  cell.drift.reset();
  cell.relation.reset();
  cell.ratio.reset();
  const std::optional<std::uint64_t> session = newest_session(cell);
  if (!session) return;
  cell.summary = summary_of(session_values(cell, *session));
  const std::optional<std::uint64_t> before = session_before(cell, *session);
  if (!before) return;
  const Summary earlier = summary_of(session_values(cell, *before));
  const Relation change = relate(*cell.summary, earlier, better);
  if (change == Relation::better || change == Relation::worse) {
    cell.drift = Drift{earlier.median, cell.summary->median};
  }
}

bool on_other_devices(const Cell& a, const Cell& b) {
  return a.device && b.device && a.device != b.device;
}

void conclude_row(RowResult& row) {
  const Better better = better_of(row);
  for (Cell& cell : row.sides) conclude_cell(cell, better);
  if (row.computed || better == Better::neither) return;
  for (Cell& cell : row.sides) {
    const Cell* const base = base_of(row, cell);
    if (base == nullptr || on_other_devices(cell, *base)) continue;
    const Relation relation = relate(*cell.summary, *base->summary, better);
    cell.relation = name_of(relation);
    const bool claims = relation == Relation::better || relation == Relation::worse;
    if (claims && base->summary->median > 0 && cell.summary->median > 0) {
      cell.ratio = cell.summary->median / base->summary->median;
    }
  }
}

}  // namespace

const SideResult* find_side(const Comparison& in, std::string_view id) {
  const auto found = std::find_if(in.sides.begin(), in.sides.end(),
                                  [&](const SideResult& one) { return one.id == id; });
  return found == in.sides.end() ? nullptr : &*found;
}

const Cell* find_cell(const RowResult& row, std::string_view side) {
  const auto found = std::find_if(row.sides.begin(), row.sides.end(),
                                  [&](const Cell& one) { return one.side == side; });
  return found == row.sides.end() ? nullptr : &*found;
}

const RowResult* find_row(const Comparison& in, std::string_view id) {
  const auto found = std::find_if(in.rows.begin(), in.rows.end(),
                                  [&](const RowResult& one) { return one.id == id; });
  return found == in.rows.end() ? nullptr : &*found;
}

RowResult* find_row(Comparison& in, std::string_view id) {
  return const_cast<RowResult*>(find_row(std::as_const(in), id));
}

Better better_of(const RowResult& row) {
  if (row.better == name_of(Better::lower)) return Better::lower;
  return row.better == name_of(Better::higher) ? Better::higher : Better::neither;
}

std::optional<std::uint64_t> newest_session(const Cell& cell) {
  std::optional<std::uint64_t> newest;
  for (const Sample& one : cell.samples) {
    if (!newest || one.session > *newest) newest = one.session;
  }
  return newest;
}

const Cell* base_of(const RowResult& row, const Cell& cell) {
  const std::optional<std::uint64_t> session = newest_session(cell);
  if (!session) return nullptr;
  const auto base = std::find_if(row.sides.begin(), row.sides.end(),
                                 [&](const Cell& one) { return newest_session(one) == session; });
  return base == row.sides.end() || base->side == cell.side ? nullptr : &*base;
}

std::vector<const Machine*> machines_of(const Comparison& in, std::string_view side) {
  std::vector<const Machine*> machines;
  for (auto session = in.sessions.rbegin(); session != in.sessions.rend(); ++session) {
    for (const Machine& one : session->machines) {
      if (one.side == side) machines.push_back(&one);
    }
  }
  return machines;
}

const Machine* machine_of(const Comparison& in, const Cell& cell) {
  std::optional<std::uint64_t> session = newest_session(cell);
  if (!session) session = cell.text_session;
  if (!session || *session >= in.sessions.size()) return nullptr;
  for (const Machine& one : in.sessions[*session].machines) {
    if (one.side == cell.side) return &one;
  }
  return nullptr;
}

std::vector<std::string> shown_words(const std::vector<std::string>& words) {
  std::vector<std::string> shown = without_secrets(words);
  for (std::string& word : shown) {
    const std::size_t sign = word.find('=');
    if (word.starts_with('-') && sign != std::string::npos) {
      word = word.substr(0, sign + 1) + without_secrets({word.substr(sign + 1)}).front();
    }
    word = printable(word);
  }
  return shown;
}

std::string digest_of_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += fmt::format("{}:", word.size()) + word;
  return Digest::of(text).str();
}

void conclude(Comparison& comparison) {
  for (RowResult& row : comparison.rows) conclude_row(row);
}

std::string render_comparison(const Comparison& comparison) {
  return render_record(comparison, kComparison);
}

Comparison parse_comparison(std::string_view text, std::string_view shown) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const auto bad = [&](std::string why) {
    return usage_error("bad-facts", "`{}` cannot be read as a comparison", shown)
        .because(std::move(why))
        .hint(std::string(kComparison.hint));
  };
  if (text.size() > kMost) throw bad("it is larger than any comparison");
  Comparison comparison = read_record<Comparison>(text, shown, kComparison);
  for (const RowResult& row : comparison.rows) {
    for (const Cell& cell : row.sides) {
      for (const Sample& sample : cell.samples) {
        if (sample.session < comparison.sessions.size()) continue;
        throw bad(fmt::format("a sample of `{}` is of a session that is not there", row.id));
      }
    }
  }
  return comparison;
}

}  // namespace mlenv::compare
