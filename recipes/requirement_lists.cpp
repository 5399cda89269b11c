#include "recipes/requirement_lists.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/mistakes.hpp"

namespace mlenv {
namespace {

std::vector<std::string> sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

}  // namespace

std::string ListedText::shown(std::string_view message) const {
  return shown_mistake(file->shown_path, file->text, line, column, message);
}

void RequirementLists::add_index(std::string line) {
  if (std::find(indexes.begin(), indexes.end(), line) == indexes.end()) {
    indexes.push_back(std::move(line));
  }
}

void RequirementLists::add_hashes(const Release& release, const std::set<std::string>& sha256,
                                  const ListedText& place) {
  if (sha256.empty()) return;
  const auto [known, fresh] = hashes.try_emplace(release, ListedHashes{sha256, place});
  if (!fresh) known->second.sha256.insert(sha256.begin(), sha256.end());
}

std::vector<std::string> RequirementLists::requirement_texts() const {
  std::vector<std::string> texts;
  for (const ListedText& one : requirements) texts.push_back(one.text);
  return sorted(std::move(texts));
}

std::vector<std::string> RequirementLists::constraint_texts() const {
  std::vector<std::string> texts;
  for (const ListedText& one : constraints) texts.push_back(one.text);
  for (const ListedText& one : pythons) texts.push_back("Python " + one.text);
  return sorted(std::move(texts));
}

std::optional<Digest> RequirementLists::hashes_digest() const {
  if (hashes.empty() && !all_hashed) return std::nullopt;
  std::string text = fmt::format("mlenv hashes 1\n{}\n", all_hashed ? "all" : "some");
  for (const auto& [release, promised] : hashes) {
    text += fmt::format("{}=={}", release.first, release.second);
    for (const std::string& hex : promised.sha256) text += ' ' + hex;
    text += '\n';
  }
  return Digest::of(text);
}

}  // namespace mlenv
