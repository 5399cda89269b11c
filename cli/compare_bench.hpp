#pragma once
// What a comparison measures with, made ready: images, their files for the bare host, the work
// folder.
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "runner/compare/measure.hpp"

namespace mlenv::cli {

struct CompareWords {
  std::string image;
  std::string sides;
  std::string rows;
  std::vector<std::string> options;  ///< `SIDE=WORD`
  bool quick = false;
  std::string budget;
  std::uint64_t cpus = 0;
  std::string memory;
  std::string tools;
  std::string previous;
  std::vector<std::string> prices;
  double own = 0;
  std::string json_file;
  std::string html;
  bool markdown = false;
  std::string show;
  std::vector<std::string> command;
};

class CompareBench {
 public:
  /// Throws what finding, building and unpacking the image throw; that there is no image with tools
  /// is a reason in `options.tools_why`.
  CompareBench(Ui& ui, const CompareWords& words);
  CompareBench(const CompareBench&) = delete;
  CompareBench& operator=(const CompareBench&) = delete;
  ~CompareBench() = default;

  compare::MeasureOptions options;
  compare::Bench bench;
  std::string image_name;
  Image image;
  std::optional<Image> tools;
  std::optional<Image> previous;

 private:
  void choose_sides(const Store& store, const CompareWords& words);
  void limit_processors(std::uint64_t wanted);
  void find_tools(Ui& ui, const std::string& name);
  void make_work_folder();
  void make_bare(Ui& ui);

  std::optional<TemporaryFolder> work_;
  std::optional<TemporaryFolder> bare_folder_;
  std::optional<compare::Minders> minders_;  ///< which know that folder: they go before it
  std::optional<compare::BareImage> bare_;
  std::optional<compare::BareImage> bare_tools_;
};

/// Throws `usage` for what can be told to be wrong before anything is made ready.
void check_words(const CompareWords& words);

/// `a,b` as a list, each once. Throws `usage` for what is no side.
std::vector<std::string> parse_sides(const std::string& text);
/// `SIDE=WORD` by side. Throws `usage`.
std::map<std::string, std::vector<std::string>> parse_side_options(
    const std::vector<std::string>& words);

}  // namespace mlenv::cli
