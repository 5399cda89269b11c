#pragma once
// Programs as a container of an image finds them.
#include <optional>
#include <string>
#include <string_view>

#include "images/inspect/image_tree.hpp"
#include "images/oci.hpp"
#include "images/stacked_trees.hpp"

namespace mlenv {

/// What an image holds, as far as one has to know it to choose a program.
class ImageNames {
 public:
  ImageNames() = default;
  ImageNames(const ImageNames&) = delete;
  ImageNames& operator=(const ImageNames&) = delete;
  virtual ~ImageNames() = default;
  /// Links are followed.
  virtual bool is_program(const std::string& path) const = 0;
  /// Whether there is anything in that folder.
  virtual bool has_entries(const std::string& folder) const = 0;
};

/// Of its unpacked layers, which have to outlive it.
class StackedNames final : public ImageNames {
 public:
  explicit StackedNames(const StackedTrees& files) : files_(&files) {}
  bool is_program(const std::string& path) const override { return files_->is_program(path); }
  bool has_entries(const std::string& folder) const override {
    return !files_->list(folder).empty();
  }

 private:
  const StackedTrees* files_;
};

/// The same, of layers that it opens itself.
class UnpackedNames final : public ImageNames {
 public:
  explicit UnpackedNames(const std::vector<fs::path>& trees) : files_(trees) {}
  bool is_program(const std::string& path) const override {
    return StackedNames(files_).is_program(path);
  }
  bool has_entries(const std::string& folder) const override {
    return StackedNames(files_).has_entries(folder);
  }

 private:
  StackedTrees files_;
};

/// Of what is known of its layers, which need not be unpacked: any file counts as a program, and
/// folders are looked for where they truly are.
class KnownNames final : public ImageNames {
 public:
  explicit KnownNames(std::vector<LayerFacts> layers) : files_(std::move(layers)) {}
  bool is_program(const std::string& path) const override { return files_.find(path) != nullptr; }
  bool has_entries(const std::string& folder) const override;

 private:
  ImageTree files_;
};

/// Absolute path of the first program of that name in the image's PATH; nullopt: there is none.
std::optional<std::string> program_in_image(const ImageConfig& image, const ImageNames& files,
                                            std::string_view name);

}  // namespace mlenv
