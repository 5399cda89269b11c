#pragma once
// Wheels of pages (`find-links`), which seldom tell a digest: a lock needs it, so they are fetched.
#include "base/http.hpp"
#include "base/progress.hpp"
#include "recipes/recipe.hpp"
#include "recipes/resolve/pylock.hpp"

namespace mlenv {

/// Whether the recipe has the package looked for on a page or in a folder.
bool is_on_page(const Recipe& recipe, const std::string& package);

/// Fetches `wheel` into the cache, unless its server says by ETag or date that the copy there is
/// the same, and fills in its digest and size; its URL is then the copy's. Copies that no lock used
/// for a month go.
void learn_digest(PylockWheel& wheel, Http& http, const fs::path& cache, Progress& progress);

}  // namespace mlenv
