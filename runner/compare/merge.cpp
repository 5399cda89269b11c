#include "runner/compare/merge.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "runner/compare/rows.hpp"
#include "runner/compare/side.hpp"

namespace mlenv::compare {
namespace {

/// The newer cell's words, and the samples of both.
void merge_cell(RowResult& row, Cell now) {
  for (Cell& earlier : row.sides) {
    if (earlier.side != now.side) continue;
    if (now.samples.empty() && !now.text) return;  // what was measured before stays
    now.samples.insert(now.samples.begin(), earlier.samples.begin(), earlier.samples.end());
    earlier = std::move(now);
    return;
  }
  row.sides.push_back(std::move(now));
}

/// Places in the report's own order; what it does not know stands last.
template <class Spec>
std::size_t spec_place(std::string_view id, std::span<const Spec> specs) {
  std::size_t place = 0;
  while (place < specs.size() && specs[place].id != id) ++place;
  return place;
}

void put_in_order(Comparison& comparison) {
  const auto side_place = [](std::string_view id) { return spec_place(id, side_specs()); };
  std::stable_sort(comparison.sides.begin(), comparison.sides.end(),
                   [&](const SideResult& a, const SideResult& b) {
                     return side_place(a.id) < side_place(b.id);
                   });
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                   [](const RowResult& a, const RowResult& b) {
                     return spec_place(std::string_view(a.id), row_specs()) <
                            spec_place(std::string_view(b.id), row_specs());
                   });
  for (RowResult& row : comparison.rows) {
    for (const SideResult& side : comparison.sides) {
      if (find_cell(row, side.id) != nullptr) continue;
      Cell cell;
      cell.side = side.id;
      cell.why = side.why ? *side.why : "not asked for";
      row.sides.push_back(std::move(cell));
    }
    std::stable_sort(row.sides.begin(), row.sides.end(), [&](const Cell& a, const Cell& b) {
      return side_place(a.side) < side_place(b.side);
    });
  }
}

}  // namespace

std::string apart(const Comparison& earlier, const Comparison& now) {
  const Terms& a = earlier.terms;
  const Terms& b = now.terms;
  if (a.image != b.image) return fmt::format("it is of the image {}", a.image);
  if (a.command != b.command || a.command_digest != b.command_digest) {
    return "it has another command";
  }
  if (a.folder != b.folder) {
    return fmt::format("its command was started in `{}`", a.folder.value_or("another folder"));
  }
  if (a.previous != b.previous) return "its `--previous` was another image";
  if (a.processors != b.processors || a.memory != b.memory) {
    return "its sides had other processors or memory";
  }
  if (a.tools && b.tools && a.tools != b.tools) {
    return "it was measured with another version of the tools";
  }
  if (earlier.host.name != now.host.name || earlier.host.cpu != now.host.cpu) {
    return fmt::format("it was measured on the host {}", earlier.host.name);
  }
  for (const SideResult& side : now.sides) {
    const SideResult* const before = find_side(earlier, side.id);
    if (before != nullptr && !before->why &&
        (before->options != side.options || before->options_digest != side.options_digest)) {
      return fmt::format("its {} had other options", side.title);
    }
  }
  return "";
}

Comparison merged(Comparison earlier, Comparison now) {
  const auto first = static_cast<std::uint64_t>(earlier.sessions.size());
  earlier.sessions.insert(earlier.sessions.end(), now.sessions.begin(), now.sessions.end());
  earlier.host = now.host;
  if (!now.terms.tools) now.terms.tools = earlier.terms.tools;
  earlier.terms = now.terms;
  for (SideResult& side : now.sides) {
    const SideResult* const before = find_side(earlier, side.id);
    if (side.why && before != nullptr && !before->why) continue;  // what was measured before stays
    std::erase_if(earlier.sides, [&](const SideResult& one) { return one.id == side.id; });
    earlier.sides.push_back(std::move(side));
  }
  for (RowResult& row : now.rows) {
    for (Cell& cell : row.sides) {
      for (Sample& sample : cell.samples) sample.session += first;
      if (cell.text_session) *cell.text_session += first;
    }
    RowResult* const before = find_row(earlier, row.id);
    if (before == nullptr) {
      earlier.rows.push_back(std::move(row));
      continue;
    }
    for (Cell& cell : row.sides) merge_cell(*before, std::move(cell));
  }
  put_in_order(earlier);
  conclude(earlier);
  return earlier;
}

}  // namespace mlenv::compare
