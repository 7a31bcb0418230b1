int lockstep_mpv_placeholder(void);
