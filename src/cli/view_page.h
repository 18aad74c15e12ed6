/* SPDX-License-Identifier: MIT
 * view_page.h - the parts of the page that do not depend on the profile; made from view_page.html, .css and *.js at build
 * time (view_page.cmake). NUL-terminated; the hashes are hexadecimal.
 */
#ifndef HP_VIEW_PAGE_H
#define HP_VIEW_PAGE_H

extern const char hp_view_page_html[]; /* with @CSP@, @VERSION@, @TITLE@, @CSS@, @DATA@, @JS@ to be filled in, once each */
extern const char hp_view_page_html_sha256[];
extern const char hp_view_page_css[];
extern const char hp_view_page_css_sha256[];
extern const char hp_view_page_js[];
extern const char hp_view_page_js_sha256[];

#endif
