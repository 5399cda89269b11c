#pragma once
// What others put into a store while they could write there: it is not taken for the store's.
#include <sys/stat.h>

#include "base/files.hpp"

namespace mlenv {

/// Whether what lies in a store, and belongs to `maker`, was made by one who may: this user, root,
/// or `owner`, to whom the store's own folder belongs.
bool may_make(uid_t maker, uid_t owner);

/// The folder of that name in a store, which need not be there: no link, and no stranger's. Else
/// throws `not-a-store`.
fs::path own_part_of_store(const fs::path& root, const char* name);

/// Folders of the store, and its own at last, that others may write to lose that, if they are this
/// user's. Of a folder that others could write to until now everything in it is looked at: throws
/// `not-a-store` for what a stranger made.
void shut_others_out(const fs::path& root);

}  // namespace mlenv
