# The page of `heapprof view`, joined and put into the binary as view_page_bytes.c (view_page.h declares it).
set(HP_VIEW_PAGE_SCRIPTS view_page_model.js view_page_flame.js view_page_table.js view_page_trend.js view_page_parts.js view_page.js)
set(HP_VIEW_PAGE_PARTS ${HP_VIEW_PAGE_SCRIPTS} view_page.html view_page.css)
list(TRANSFORM HP_VIEW_PAGE_PARTS PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
string(REPLACE ";" "," HP_VIEW_PAGE_SCRIPT_LIST "${HP_VIEW_PAGE_SCRIPTS}")
add_custom_command(
  OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/view_page_bytes.c
  COMMAND ${CMAKE_COMMAND} -DPAGE_DIR=${CMAKE_CURRENT_LIST_DIR} -DSCRIPTS=${HP_VIEW_PAGE_SCRIPT_LIST}
          -DOUT=${CMAKE_CURRENT_BINARY_DIR}/view_page_bytes.c -P ${CMAKE_CURRENT_LIST_DIR}/view_page_embed.cmake
  DEPENDS ${HP_VIEW_PAGE_PARTS} ${CMAKE_CURRENT_LIST_DIR}/view_page_embed.cmake
  VERBATIM)
target_sources(hp_cli PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/view_page_bytes.c)
