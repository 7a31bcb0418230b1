int lockstep_process_placeholder(void);
