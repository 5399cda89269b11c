#pragma once
// A comparison for tests of what is said of one.
#include "runner/compare/comparison.hpp"
#include "runner/compare/rows.hpp"

namespace mlenv::compare {

inline Cell cell_of(const char* side, const std::vector<double>& values,
                    std::uint64_t session = 0) {
  Cell cell;
  cell.side = side;
  for (const double value : values) cell.samples.push_back({value, session});
  return cell;
}

inline Cell gap_of(const char* side, const char* why) {
  Cell cell;
  cell.side = side;
  cell.why = why;
  return cell;
}

/// Of the newest session.
inline void say_machine(Comparison& in, const char* side, const char* accelerator) {
  Machine machine;
  machine.side = side;
  machine.accelerator = accelerator;
  in.sessions.back().machines.push_back(machine);
}

inline RowResult row_with(const char* id, std::vector<Cell> cells) {
  RowResult row = row_of(*find_spec(id));
  row.sides = std::move(cells);
  return row;
}

inline SideResult side_named(const char* id, const char* title) {
  SideResult side;
  side.id = id;
  side.title = title;
  return side;
}

/// A bare host and a container that starts ten times as slowly, trains alike, and a virtual machine
/// that is not there.
inline Comparison some_comparison() {
  Comparison comparison;
  comparison.terms.image_name = "small";
  comparison.terms.image = "sha256:1";
  comparison.terms.tools = "sha256:2";
  comparison.terms.processors = 2;
  comparison.host = {"host", "6.1", "a processor", 2, 8000000000};
  comparison.sides = {side_named("bare", "bare host"), side_named("builtin", "built-in container"),
                      side_named("vm", "virtual machine")};
  comparison.sides[2].why = "`vm` is no runtime";
  Session session;
  session.started = "2026-01-02T03:04:05.000Z";
  comparison.sessions.push_back(session);
  comparison.rows = {
      row_with("start.user", {cell_of("bare", {0.0040, 0.0041, 0.0042, 0.0043, 0.0044, 0.0045}),
                              cell_of("builtin", {0.040, 0.041, 0.042, 0.043, 0.044, 0.045}),
                              gap_of("vm", "`vm` is no runtime")}),
      row_with("train.step",
               {cell_of("bare", {1, 2, 3, 4, 5, 6}), cell_of("builtin", {2, 3, 4, 5, 6, 7}),
                gap_of("vm", "`vm` is no runtime")}),
  };
  conclude(comparison);
  return comparison;
}

}  // namespace mlenv::compare
