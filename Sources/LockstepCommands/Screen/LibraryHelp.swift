/// The keys of the library’s pages.
enum LibraryHelp {
    static let lines = [
        "U Up Next, I Inbox, P Podcasts, L Playlists, / Search, H History; Tab and Shift-Tab: the next and previous page.",
        "↑ ↓ or j k, Page Up, Page Down, Home, End: select. Space: choose several episodes.",
        "Enter: play the episode, or open the podcast or playlist. Backspace or Esc: back.",
        "a add to the end of Up Next, A add after the current entry, d download, m mark as played or unplayed, f favourite or not, o show notes.",
        "l add to a playlist, N create a playlist, M mark all episodes of the podcast as played, u undo.",
        "On playlists: p play, s play shuffled, x remove the episode, J K move it down or up.",
        "← → seek, [ ] speed, + - volume, n next, z sleep timer, b bookmark, digits answer alerts, i describes the state, q quits.",
    ]
}
