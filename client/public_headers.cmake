# The public headers: client/client.h and what it includes of ours, as others see them.
#
# Within this tree a header is "client/scan.h" or "kernels/types.h". Installed it is <prefixd/scan.h> or
# <prefixd/kernels/types.h>, so that no base/status.h of ours can meet a user's. For that each public header has a copy
# in the build tree, whose includes are rewritten; the copies are what is installed and what the example sees.

# Where `header`, a path from the top of this tree, stands below include/prefixd.
function(prefixd_public_path header out)
  string(REGEX REPLACE "^client/" "" path ${header})
  set(${out} ${path} PARENT_SCOPE)
endfunction()

# Copies `header` and, in turn, what it includes of ours to `folder`/prefixd, and sets `out` to the copies.
# An edit of one of them has CMake run again; a copy that stays the same keeps its time.
function(prefixd_copy_public_headers header folder out)
  set(pending ${header})
  set(seen)
  set(copies)
  while(pending)
    list(POP_FRONT pending header)
    if(header IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(READ ${PROJECT_SOURCE_DIR}/${header} text)
    string(REGEX MATCHALL "#include \"(base|client|kernels|proto)/[^\"]*\"" lines "${text}")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "#include \"(.*)\"" "\\1" included ${line})
      list(APPEND pending ${included})
      prefixd_public_path(${included} path)
      string(REPLACE "${line}" "#include \"prefixd/${path}\"" text "${text}")
    endforeach()
    prefixd_public_path(${header} path)
    file(CONFIGURE OUTPUT ${folder}/prefixd/${path} CONTENT "${text}" @ONLY)
    list(APPEND copies ${folder}/prefixd/${path})
  endwhile()
  set(${out} ${copies} PARENT_SCOPE)
endfunction()
