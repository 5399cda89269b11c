#pragma once
// Facts of an image, from its configuration and its bytes.
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "images/inspect/image_facts.hpp"
#include "images/inspect/layer_facts.hpp"
#include "images/store.hpp"

namespace mlenv {

/// Of an image in the store, whoever made it; `name` is left empty for the caller, `kind` is
/// `image`. Layers are read from their unpacked trees, else from their blobs as they stream by, in
/// parallel; what was found is remembered in the store, of a layer by its diff-id and of an image
/// by its digest. Throws what reading a layer throws (`absent`, `damaged`, `bad-tar`), and
/// `too-large` for an image of more files than mlenv looks through.
ImageFacts image_facts(Store& store, const Image& image, Progress& progress);

/// What is remembered of it; nullopt: nothing is, and nothing is read.
std::optional<ImageFacts> remembered_image_facts(const Store& store, const Image& image);

/// What came of importing its packages (`mlenv build --imports`) is a fact of the image in this
/// store from now on: of several trials, also at once, the last one's.
void remember_imports(Store& store, const Image& image, std::vector<FailedImport> failed);

/// Of all its layers, the bottom one first, in parallel: for an ImageTree. Throws as `image_facts`.
std::vector<LayerFacts> facts_of_layers(Store& store, const Image& image, Progress& progress);

/// Sizes of the files in those layers of an image in the store that are not unpacked there.
std::uint64_t bytes_to_unpack(Store& store, const Image& image, Progress& progress);

}  // namespace mlenv
