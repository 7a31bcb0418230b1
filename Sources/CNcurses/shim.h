#define NCURSES_WIDECHAR 1
#define NCURSES_OPAQUE 1
#define NCURSES_NOMACROS 1
#include <langinfo.h>
#include <locale.h>
#include <wchar.h>
#include <curses.h>
#include <term.h>

// The attributes are nested macros, which Swift doesn't import.
static const attr_t lockstep_attribute_normal = A_NORMAL;
static const attr_t lockstep_attribute_bold = A_BOLD;
static const attr_t lockstep_attribute_dim = A_DIM;
static const attr_t lockstep_attribute_reverse = A_REVERSE;
static const mmask_t lockstep_mouse_press = BUTTON1_PRESSED;
static const mmask_t lockstep_mouse_wheel_up = BUTTON4_PRESSED;
static const mmask_t lockstep_mouse_wheel_down = BUTTON5_PRESSED;
