/** The command that is run; `bullswarm integrate` writes the absolute path of its own into its copy of the mod. */
export const COMMAND = 'bullswarm'
