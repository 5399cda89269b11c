#pragma once
// Figures as people read them, the same in the terminal, in markdown and on the page.
#include <string>
#include <string_view>

#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

/// With three digits and a unit that suits it: `41.2 ms`, `1.38 GB/s`, `3 030 events/s`.
std::string figure(double value, std::string_view unit);

/// A cell in words: the median; with `interval` and what it was taken from. `not measured: why`.
struct CellWords {
  std::string value;     ///< `41.2 ms`; `not measured`; a text
  std::string interval;  ///< `39.8 ms to 44.0 ms`; empty: there is one value alone
  std::string note;      ///< `emulated`, `1.8 times …`, why, drift; empty: nothing
  bool measured = false;
};
CellWords words_of(const Comparison& in, const RowResult& row, const Cell& cell);

/// `1.84`, `23.7`, `252`: how many times something is another.
std::string times_text(double times);

/// What is claimed of a cell against its base: `1.84 times bare host`; empty: nothing.
std::string claim_of(const Comparison& in, const RowResult& row, const Cell& cell);

/// What a claim is held against where that is not the row's first figure: `built-in container`;
/// empty: it is, or nothing is claimed.
std::string other_base(const Comparison& in, const RowResult& row, const Cell& cell);

/// `emulated` or `accelerator unknown`, of a figure from a virtual machine; empty: nothing.
std::string mark_of(const Comparison& in, const Cell& cell);
/// What all figures of a side are marked with; empty: not all with the same.
std::string common_mark(const Comparison& in, std::string_view side);
/// How a side was run, newest first; empty: nothing is known.
std::string about_side(const Comparison& in, std::string_view side);

/// Sentences over the whole: sides that had other options, noise, samples too few, drift.
std::vector<std::string> remarks_of(const Comparison& in);

/// The table of every lecture on containers and virtual machines, with figures in place of its
/// adjectives.
struct ClassicRow {
  std::string question;  ///< `heavy or light?`
  std::string adjectives;
  std::string row;  ///< id of the row that answers it
};
const std::vector<ClassicRow>& classic_rows();

}  // namespace mlenv::compare
