#pragma once
// What the statements of a Python file give its names, read without running anything: texts, lists
// of them, maps of lists, and what is put together from these.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipes/python_tokens.hpp"

namespace mlenv {

class PythonValues {
 public:
  /// A plain value: one text, or a list of texts.
  struct Plain {
    bool list = false;
    std::vector<std::string> items;
  };
  /// What a statement puts into a list that is there.
  struct Addition {
    PythonTokens value;
    bool margin = false;
    int line = 0;
  };

  /// `tokens` outlive it.
  explicit PythonValues(PythonTokens tokens);

  /// Understood are texts (f-strings, `%` and `format` of names with plain values, too), lists,
  /// `+`, and names and `NAME["key"]` that statements at the left margin give such values, and add
  /// to later. nullopt: computed in another way, or too much of it.
  std::optional<Plain> plain(PythonTokens value) { return plain(value, 0); }
  /// Up to a `,` or the end of its bracket or line.
  PythonTokens expression(std::size_t begin) const;

  /// The expression that a name, or `NAME["key"]`, is given; empty: none, or more than one.
  PythonTokens given(PythonTokens name) const;
  /// The same, in whatever place: the first one.
  PythonTokens mentioned(const std::string& name) const;
  /// To the list of that name, or of `NAME["key"]`.
  const std::vector<Addition>& additions(PythonTokens name) const;
  /// Of `NAME["key"] = …`, and where.
  const std::map<std::string, int>& keys(const std::string& name) const;

  /// Texts of an addition that stands under a condition are kept as conditional().
  void note_conditional(const Addition& one);
  const std::vector<std::pair<std::string, int>>& conditional() const { return conditional_; }
  /// One of the steps that a file may cost; false: they are used up.
  bool step() { return --steps_ >= 0; }

 private:
  struct Operand {
    std::optional<Plain> value;
    std::size_t length = 1;
  };
  struct Target {
    std::string slot;
    std::size_t end = 0;
  };

  const PythonToken& at(std::size_t i) const;
  Target target(std::size_t begin) const;
  std::string slot_of(PythonTokens name) const;
  void statement(std::size_t i);
  void loop(std::size_t i);
  std::size_t value_assigned(std::size_t i) const;
  void assign(const Target& to, const PythonToken& name, PythonTokens value);

  std::optional<Plain> plain(PythonTokens value, int depth);
  Operand operand(PythonTokens value, int depth);
  Operand named(PythonTokens value, int depth);
  Operand texts(PythonTokens value, int depth);
  std::optional<std::string> filled(const PythonToken& text, int depth);
  std::optional<std::string> filled_later(std::string_view text, std::string_view mark,
                                          PythonTokens values, int depth);
  std::optional<std::string> single(PythonTokens value, int depth);
  std::optional<Plain> looked_up(const std::string& name, const std::string& key, int depth);
  std::optional<Plain> of_table(PythonTokens table, const std::string& key, int depth);
  std::optional<Plain> items(PythonTokens inner, bool round, int depth);
  bool add_later(const std::string& slot, int depth, Plain& held);
  bool add(const Plain& one, Plain& all);
  void note_texts(PythonTokens value, int depth);

  PythonTokens tokens_;
  std::map<std::string, PythonTokens> assigned_;
  std::map<std::string, PythonTokens> mentioned_;
  std::map<std::string, std::vector<Addition>> added_;
  std::map<std::string, std::map<std::string, int>> keys_;
  std::set<std::string> changed_;  ///< by more than one plain assignment at the margin
  std::vector<std::pair<std::string, int>> conditional_;
  int steps_ = 20'000;                         ///< that a file may cost: it may be anybody's
  std::size_t bytes_ = std::size_t{4} << 20U;  ///< of texts that it may come to
};

}  // namespace mlenv
