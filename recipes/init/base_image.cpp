// What the name of a base image says, by the conventions of those that are used most (their pages
// on Docker Hub; read in November 2026).
#include <fmt/core.h>

#include "recipes/base_image.hpp"
#include "recipes/distribution.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct ImageWords {
  std::string repository;
  std::vector<std::string> tag;  ///< its parts between dashes
};

ImageWords words_of(std::string_view image) {
  image = image.substr(0, image.find('@'));
  for (const std::string_view prefix :
       {"docker.io/", "index.docker.io/", "library/", "public.ecr.aws/docker/library/"}) {
    if (image.starts_with(prefix)) image.remove_prefix(prefix.size());
  }
  const std::size_t slash = image.rfind('/');
  const std::size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
  ImageWords words{std::string(image.substr(0, colon)), {}};
  if (colon == std::string_view::npos) return words;
  for (std::string_view tag = image.substr(colon + 1); !tag.empty();) {
    const std::size_t dash = tag.find('-');
    words.tag.emplace_back(tag.substr(0, dash));
    tag.remove_prefix(dash == std::string_view::npos ? tag.size() : dash + 1);
  }
  return words;
}

bool tag_has(const ImageWords& words, std::string_view part) {
  for (const std::string& one : words.tag) {
    if (one == part) return true;
  }
  return false;
}

bool is_tag_version(std::string_view text) {
  return !text.empty() && is_digit(text.front()) && text.find('.') != std::string_view::npos;
}

/// The release that a part of the tag names: `bookworm`, `jammy`, `ubuntu22.04`.
void suite_from(const ImageWords& words, std::string_view distribution, Draft& draft) {
  for (std::string_view part : words.tag) {
    std::string base = base_of_suite(distribution, part);
    if (part.starts_with(distribution)) {
      base = base_of_number(distribution, part.substr(distribution.size()));
    }
    if (!base.empty()) draft.base = std::move(base);
  }
}

void distribution(const SourcePlace& place, const ImageWords& words, std::string_view image,
                  Conversion& to) {
  const std::string& id = words.repository;
  suite_from(words, id, to.draft);
  if (to.draft.base.empty() && !words.tag.empty()) {
    to.draft.base = base_of_number(id, words.tag.front());
  }
  if (to.draft.base.empty()) {
    to.leave_out(
        place, image,
        fmt::format("it names no release of {} that mlenv knows", find_distribution(id)->name));
  }
}

void python(const SourcePlace& place, const ImageWords& words, Conversion& to) {
  if (words.tag.empty() || !is_tag_version(words.tag.front())) return;
  to.python_version(place, words.tag.front());
  Draft& draft = to.draft;
  suite_from(words, "debian", draft);
  if (!draft.python.empty() && python_of_base(draft.base) != draft.python) draft.base.clear();
}

/// `pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime`, `tensorflow/tensorflow:2.15.0-gpu`
void framework(const SourcePlace& place, const ImageWords& words, Conversion& to) {
  const bool torch = words.repository.starts_with("pytorch/");
  std::string requirement = torch ? "torch" : "tensorflow";
  if (!words.tag.empty() && is_tag_version(words.tag.front()))
    requirement += "==" + words.tag.front();
  to.python_package(place, requirement);
  for (const std::string& part : words.tag) {
    if (torch && part.starts_with("cuda")) to.cuda_release(place, part.substr(4));
  }
  if (!torch && tag_has(words, "gpu")) to.cuda_release(place, "12");
  if (tag_has(words, "jupyter")) to.python_package(place, "jupyterlab");
}

/// Any other is a base as it is, where its registry is known.
void other_image(const SourcePlace& place, std::string_view image, Conversion& to) {
  to.draft.base_note.clear();
  if (image == "scratch") return to.leave_out(place, image, "an image of nothing");
  const auto read = parse_base_image(image);
  if (const auto* mistake = std::get_if<std::string>(&read)) {
    return to.leave_out(place, image, *mistake);
  }
  to.draft.base = image;
}

}  // namespace

void convert_base_image(const SourcePlace& place, std::string_view image, Conversion& to) {
  const ImageWords words = words_of(image);
  to.draft.base_note = fmt::format("In the place of `{}`.", shown_text(image));
  if (find_distribution(words.repository) != nullptr) return distribution(place, words, image, to);
  if (words.repository == "python") return python(place, words, to);
  if (words.repository == "pytorch/pytorch" || words.repository == "tensorflow/tensorflow") {
    framework(place, words, to);
    return to.leave_out(place, image, "what else this image holds, beside the framework");
  }
  if (words.repository == "nvidia/cuda") {
    if (!words.tag.empty()) to.cuda_release(place, words.tag.front());
    suite_from(words, "ubuntu", to.draft);
    return to.leave_out(
        place, image,
        "CUDA comes with the framework's wheels, `libraries: {nvcc: true}` with the "
        "compiler; what else this image has does not");
  }
  other_image(place, image, to);
}

}  // namespace mlenv
